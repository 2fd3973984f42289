"""What every other package may use and none is needed for: atomic (files that are written whole and flushed)."""
