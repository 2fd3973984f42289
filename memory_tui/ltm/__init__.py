"""Long-term memories in LanceDB, as OpenClaw's plug-in memory-lancedb keeps them beside the Markdown.

- agent_answers: The memory tools of agents (recall, store, forget) answer in the words of OpenClaw's plug-in. -> recall
- entry: An entry is one long-term memory of an agent, with the rules of OpenClaw's plug-in memory-lancedb for it. ->
  MemoryEntry
- entry_file: A file of entries holds a table as JSON Lines: what it was made by, then an entry a line with its vector.
  -> read
- entry_journal: The journal of entries keeps every change with its inverse, because these entries exist nowhere else.
  -> EntryJournal
- entry_table: The table of entries in LanceDB. -> EntryTable
- export: An export is a copy of chunks or entries in a LanceDB table that any client can read. -> export_chunks
- lance: The only module that imports LanceDB. -> library
- location: The location of a table is a folder or an address of an object store, as a person or a configuration names
  it. -> TableLocation
- memories: The memories of one table are the entries in it. -> Memories
- vector_space: The vector space of a table is that of the model that made its vectors; a query is embedded there, or
  not at all. -> VectorSpace
"""
