"""Agent programs that start memory-tui, one file each.

- claude_code: Claude Code calls our hooks around a session. -> event
- claude_memory: Claude Code's memory since 2.1 has a file for each fact, with MEMORY.md as the index of them. ->
  fact_of
- codex: Codex is a host with a memory of its own. -> HOST
- connection: A connection is what memory-tui wrote into the files of a host, with the way back. -> connect
- file_changes: Changes of a host's files that can be taken back, whatever else was written there meanwhile. -> applied
- openclaw: OpenClaw takes a plugin for its memory slot, which starts one server for each workspace. -> HOST
- proof: A proof starts the server as a host does. -> prove
- wiring: Which files of an agent program change so that it starts memory-tui: one row a host. -> host
"""
