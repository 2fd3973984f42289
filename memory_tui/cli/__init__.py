"""The command line: text for people, `--json` for programs, documented exit codes.

- admin: Commands for set-up: `write-config` writes settings, `doctor` checks everything. -> COMMANDS
- agent: Commands that serve agents. -> COMMANDS
- ask: Commands that ask: index, status, search, get, config. -> COMMANDS
- common: What every command shares. -> opened
- connect: Commands that make an agent program use this memory: `connect`, `disconnect`. -> COMMANDS
- curate: Commands that change notes: each change is shown first; `undo` reverses it. -> COMMANDS
- hooks: Commands that a host calls around a session: prompt, flush, hook. -> COMMANDS
- inbox: The command `inbox` lists what needs a decision, or carries one out. -> COMMANDS
- lancedb_export: The command `export` copies chunks or long-term memories into a LanceDB table. -> COMMANDS
- ltm: Commands of the long-term memories in LanceDB. -> COMMANDS
- main: The table of commands: one row for each, with the module below that has it. -> COMMANDS
- measure: Commands that measure recall: eval, tune, noise. -> COMMANDS
- past: Commands that explain: why, why-never, replay. -> COMMANDS
- qmd: Commands for QMD. -> COMMANDS
- provider: The command `provider` lists embedding providers, or tests or approves one. -> COMMANDS
- serve: The app in a browser: a process of the app for each tab, at an address that only this user knows. -> COMMANDS
- show: Commands that show memory-tui to others: report, completion, man. -> COMMANDS
"""
