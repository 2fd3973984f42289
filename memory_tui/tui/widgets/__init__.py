"""The panes of the views."""
