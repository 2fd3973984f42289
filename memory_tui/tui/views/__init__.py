"""The views of the app, each imported when it is first shown."""
