"""Values, text rules that every layer uses; nothing here knows notes, an index or a screen.

- atomic: Durable writes: a file holds its old bytes or its new ones, never a part. -> replace_file
- cancel: One way to stop a job: whoever wants it stopped sets a stop, the job asks it. -> Stop
- errors: Errors as values: each has a code, a sentence for a person, the next step. -> MemoryTuiError
- events: Events tell a listener what the engine does; a listener runs on the engine's thread, so it returns at once.
  -> Event
- files: The kind of file system that holds a file, as far as SQLite must know it. -> kind
- formatting: How a count, a score, an age, the name of a field is written. -> plural
- jsstring: String rules of JavaScript that chunk boundaries, ids, snippets depend on. -> sha256_hex
- key_formats: The formats of secret keys, as their makers document them. -> FORMATS
- keywords: The keywords of a query, chosen as OpenClaw chooses them without vectors. -> keywords
- locks: A lock lets one process write a file; the lock file names that process. -> WriterLock
- profiles: A scoring profile as data: values of the shared knobs, rules that no knob can set. -> get
- redaction: Redaction masks secrets of a conversation with OpenClaw's own patterns. -> redact
- sanitize: Any text becomes safe to show: it cannot steer the terminal, hide itself or reorder its neighbours. ->
  safe
- secret_finder: Text that looks like a password or a key: its kind, its position, never the secret itself. -> find
- settings: Every knob, a row each: key, range, step, default, unit, help; `search.score` reads it. -> KNOBS
- side_files: Side files: small files of ours beside another file, opened without following a link or waiting for a
  pipe. -> read_beside
- spelling: Spelling: a word that no note holds is searched as the word that was meant. -> corrections
- state_db: The state database: small facts that several processes change, one SQLite file in the user's state folder.
  -> Table
- stop_signals: The signals that end the program, with the sentence for each. -> raised
- tokens: The words of queries as full-text search needs them, for every profile. -> terms
"""
