"""Configuration files: which one applies, what it says for which agent, on which line.

- agents: OpenClaw's agents: their names, the default one, the folder of each. -> agent_list
- config_write: A configuration file is written in one step, with a backup that undo restores. -> write
- json5: JSON5 becomes a tree that remembers the position of each value. -> parse_json5
- json5_edit: A JSON5 text gets new values; every other byte stays as it is. -> spliced
- keys: Every documented key of OpenClaw's memory: type, default, meaning, effect here; those of knobs come from their
  rows. -> Key
- load: The configuration that applies to a workspace is found, read, checked. -> load
- migration: A migration is what OpenClaw 2026.9's doctor changes in an older configuration; shown only. -> migrations
- model: A configuration as frozen values, each with the place it comes from. -> Config
- places: The environment says where configuration, state, workspace lie. -> openclaw_path
- provider_accounts: The accounts of providers that OpenClaw shares: `models.providers`, auth profiles. -> shared
- release: The release of OpenClaw that is in use: by its installed program, else by what its files look like. -> meant
- secret_refs: A secret of a configuration is looked up when it is needed; it is never shown, never run. -> Secrets
"""
