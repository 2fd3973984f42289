"""OpenClaw's own files are read here. Session notes are written, and with approval hashes of its trust ledger; nothing
else.

- agent_sessions: Agent sessions of OpenClaw 2026.9 stand in a database, out of which they are copied as transcripts. ->
  SessionCopies
- compare: A comparison of OpenClaw's own index with the notes on disk, file by file. -> compare
- dreaming: Dreaming is what OpenClaw 2026.9 writes into notes at night, between markers that it looks for again. ->
  dream_blocks
- flush: The memory flush before compaction: when a session must write down what it knows. -> decide
- host_index: The host index is OpenClaw's own SQLite index, which is only read. -> open_index
- open_foreign: The SQLite file of another program is read without a write, a side file or a long lock. -> read_foreign
- own_rows: OpenClaw's own rows are copied into a private index, which answers as OpenClaw does. -> index_of
- prompt: The prompt: what an agent reads about its memory when a session starts. -> opening
- session_note: A session note is the end of a conversation, saved as memory/YYYY-MM-DD-slug.md. -> save
- sessions: The sessions of an agent as its host records them. -> near
- trigger_recall: Trigger recall is what OpenClaw 2026.9 puts before the agent for a message, because a note's trigger
  fits. -> triggered
- trust: Trust is whether OpenClaw 2026.9 still takes a memory file for its agent's own. -> Trust
"""
