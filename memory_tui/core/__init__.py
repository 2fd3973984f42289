"""Values that every layer uses. Text rules stand here, too; nothing here knows notes, an index or a screen.

- atomic: Durable writes: a file holds its old bytes or its new ones, never a part. -> replace_file
- cancel: One way to stop a job. -> Stop
- discreet: The base of records whose repr leaves out what is secret, or too long to read. -> Discreet
- errors: Errors are values. -> MemoryTuiError
- events: Events tell a listener what the engine does; a listener runs on the engine's thread, so it returns at once. ->
  Event
- files: The kind of file system that holds a file, as far as SQLite must know it. -> kind
- formatting: One way to write values for a person. -> plural
- jsstring: String rules of JavaScript. -> sha256_hex
- key_formats: The formats of secret keys, as their makers document them. -> FORMATS
- keywords: The keywords of a query, chosen as OpenClaw chooses them without vectors. -> keywords
- locks: A lock lets one process write a file; the lock file names that process. -> WriterLock
- profiles: A scoring profile is data. -> get
- sanitize: Any text becomes safe to show: it cannot steer the terminal, hide itself or reorder its neighbours. -> safe
- secret_finder: Finds text that looks like a password or a key. -> find
- settings: Every knob is one row. -> KNOBS
- side_files: Side files: small files of ours beside another file, opened without following a link or waiting for a
  pipe. -> read_beside
- spelling: Spelling: a word that no note holds is searched as the word that was meant. -> corrections
- state_db: The state database: small facts that several processes change, one SQLite file in the user's state folder.
  -> Table
- stop_signals: The signals that end the program, with the sentence for each. -> raised
- tokens: The words of queries as full-text search needs them, for every profile. -> terms
"""
