"""Embedding providers: from texts to unit vectors, with every failure as a value."""
