"""What is on disk: roots, notes and their chunks."""
