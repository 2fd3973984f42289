"""Asking: from a query to a trace."""
