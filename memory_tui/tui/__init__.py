"""The terminal app: views over one engine, on Textual's own parts."""
