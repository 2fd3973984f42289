"""The views, each imported when it is first shown."""
