"""Parts that several views share, each with what Textual lacks for it."""
