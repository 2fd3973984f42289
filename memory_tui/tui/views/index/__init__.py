"""View 3: the index, with the views that open over it."""
