"""View 2: the search, with the views that explain, judge, tune."""
