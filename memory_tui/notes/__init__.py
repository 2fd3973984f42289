"""Changes of notes. `edit.py` shows each first, writes it in one step, journals it, and undoes it on request."""
