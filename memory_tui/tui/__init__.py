"""The terminal app: screens and widgets that show what the engine knows, and nothing that the engine does not."""
