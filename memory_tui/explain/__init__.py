"""Saying why."""
