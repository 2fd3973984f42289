"""View 5: the map of the memory."""
