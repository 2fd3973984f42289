"""View 4: the inbox."""
