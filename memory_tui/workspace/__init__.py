"""The notes on disk.

- annotations: Annotations are comments in a note that OpenClaw 2026.9 reads. -> read_annotations
- chunking: Chunking cuts a note into overlapping chunks exactly as OpenClaw up to 2026.3.13 does. -> chunk_text
- chunking_2026_9: Chunking cuts a note exactly as OpenClaw 2026.9 does. -> chunk_note
- incremental: An incremental scan visits only paths that changed since the last full scan. -> FullScan
- media: A media file is an image or a sound below extraPaths: its label is indexed, its bytes are embedded. -> read
- notes: A note at one moment. -> read
- root_state: The state of a root: there, gone, unreadable or stalled. -> RootState
- roots: Roots are where notes may live: MEMORY.md, memory/, extraPaths; a path is checked against them. -> Roots
- scan: A full scan finds the notes below the roots, with a reason for everything left out. -> Walk
- transcripts: Transcripts are conversations as notes: the JSONL files of an agent's sessions. -> Transcript
"""
