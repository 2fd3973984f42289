"""Agent programs that start memory-tui, one file each.

- claude_code: Claude Code calls hooks at the start of a session, before compaction, at its end. -> event
- client_entries: The entry that makes an MCP client start the server. -> entry
- codex: Codex starts the server by its config.toml, calls hooks by its hooks.json. -> server_entry
- connection: A connection is what memory-tui wrote into the files of a host, with the way back. -> connect
- file_changes: Changes of a host's files that can be taken back, whatever else was written there meanwhile. -> applied
- openclaw: OpenClaw takes a plugin for its memory slot, which starts one server for each workspace. -> HOST
- proof: A proof starts the server as a host does, asks it a question, says who answered. -> prove
- wiring: Which files of an agent program change so that it starts memory-tui: one row a host. -> host
"""
