"""Keeping chunks and vectors, and keeping them fresh."""
