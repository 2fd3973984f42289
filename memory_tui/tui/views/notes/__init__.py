"""View 1: the notes, with the views that change them."""
