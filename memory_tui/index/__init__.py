"""The SQLite index of a workspace."""
