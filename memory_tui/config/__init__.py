"""Configuration files. They are found and read for each agent, with the line of every value.

- agents: OpenClaw's agents, as its configuration names them. -> agent_list
- config_write: A configuration file is written in one step, with a backup that undo restores. -> write
- json5: JSON5 becomes a tree that remembers the position of each value. -> parse_json5
- json5_edit: A JSON5 text gets new values; every other byte stays as it is. -> spliced
- keys: Every documented key of OpenClaw's memory is one row. -> Key
- load: Loading finds the configuration that applies to a workspace. -> load
- model: A configuration as frozen values, each with the place it comes from. -> Config
- places: Environment variables say where files lie. -> openclaw_path
- provider_accounts: The accounts of providers that OpenClaw shares: `models.providers`, auth profiles. -> shared
- release: The release of OpenClaw that is in use: by its installed program, else by what its files look like. -> meant
- secret_refs: A secret of a configuration is looked up when it is needed. -> Secrets
"""
