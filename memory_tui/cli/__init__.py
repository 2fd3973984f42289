"""The command line: text for people, `--json` for programs, documented exit codes.

- admin: Commands for set-up: `configure` writes settings, `doctor` checks everything. -> add_configure
- agent: Commands for agents: the MCP server, the recall log, the prompt, the flush, the host's hooks. -> add_server
- ask: Commands that ask: index, search, explain, measure. -> add_daily
- common: What every command shares: its options, an open engine, its place in the table. -> opened
- curate: Commands that change notes: each change is shown first; `undo` reverses it. -> add_changes
- main: The command line reads its arguments, runs one command, returns its exit code. -> main
- provider: The command `provider` lists embedding providers, tests one, approves one. -> add
"""
