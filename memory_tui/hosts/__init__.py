"""Hosts other than OpenClaw that start memory-tui, one file each.

- claude_code: Claude Code calls hooks at the start of a session, before compaction, at its end. -> event
- client_entries: The entry that makes an MCP client start the server. -> entry
- codex: Codex starts the server by its config.toml, calls hooks by its hooks.json. -> server_entry
"""
