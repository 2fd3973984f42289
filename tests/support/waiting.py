"""How long a test waits for a fact: far more than a busy machine needs, far less than a hang takes."""

LONG = 60.0
"""Seconds. The speed itself is measured by the scripts in `tests/bench`."""
