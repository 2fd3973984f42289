"""Changes of notes. Each is shown first, written in one step, journaled, and undone on request."""
