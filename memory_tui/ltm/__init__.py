"""Long-term memories in LanceDB, as OpenClaw's plug-in memory-lancedb keeps them beside the Markdown."""
