"""The notes on disk."""
