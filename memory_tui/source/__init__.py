"""The seam for stores. A store fulfils its protocols and returns its values.

A store knows this package and never `search`; `search`, `explain`, `tune`, `curate`, `inbox` and `tui` know this
package and never a store. A new store is a package that passes the contract tests.

- last_text: The last text is what a store holds of a note, put together from its chunks. -> last_text
- note_state: The state of a note: how the file on disk differs from what was indexed. -> difference
- protocol: What a search needs of a store. -> ChunkSource
- rows: Rows: the plain values that a store hands to a search. -> ChunkPage
"""
