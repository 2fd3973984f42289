"""Results as text for a person. Command line, MCP and screen show the same."""
