"""The SQLite index of a workspace.

- abilities: What this SQLite can do. -> Vec0Use
- batch_jobs: Batch jobs: which text waits for which job of a provider's batch service, so that none is paid twice. ->
  claim
- connections: Read-only connections, one for each running query, reused by the next. -> Readers
- database: An index as an SQLite database: its connection, with what it can load. -> Database
- disk_usage: Disk usage of an index, table by table. -> tables
- embedding: Embedding of chunks decides which texts or media files go to the provider. -> Embedder
- freshness: Freshness compares the index with the files on disk. -> compare
- full_text: Full-text search of an index by FTS5. -> FullText
- index_file: Where the index file lies: private to its user, never in the place of another file. -> find
- index_notices: Notices about opening or reading an index, each with its evidence. -> MovedAside
- index_write: Writes to an index, one transaction each. -> replace_files
- integrity: Integrity finds the damage of an index file. -> problems
- mass_deletion: A mass deletion is held back until the notes are certainly gone. -> sort_out
- note_rows: A note as rows of the index: its chunks under their headings, with what a person should know of it. -> cut
- rebuild: A rebuild makes a new index beside the old one, then publishes it in one step. -> begin
- schema: The schema of an index file. -> Recipe
- store: The store reads the rows of an index. -> Store
- sync: A sync makes the index hold what is on disk. -> sync
- sync_run: One run of a sync over an index. -> SyncRun
- watch: The watcher notices saved notes. -> Watcher
"""
