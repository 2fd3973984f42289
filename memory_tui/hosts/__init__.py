"""Agent programs that start memory-tui, one file each."""
