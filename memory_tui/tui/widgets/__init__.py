"""The panes of the views.

- file_tree: The file tree lists notes in groups, each with its state, age, size. -> FileTree
- index_lists: The lists of the index view: its status in full, its events. -> Statements
- note_side: Beside a note: its state, its recalls, its links, the lines of a change. -> AboutPane
- query: The query box, with the funnel that counts the chunks left after each stage. -> QueryBox
- reader: The reader shows a note as it is on disk, with line numbers, chunks, recalled lines. -> Reader
- results: The results list hits, gates, misses with their reasons. -> HitList
- rowlist: A list of rows of any height, drawn when they are seen. -> RowList
- status_bars: Status bars: tabs beside the truth bar above every view, key hints below. -> TruthBar
- tune_strip: The tune strip shows the knobs of the ranking; every turn ranks again. -> TuneStrip
- why_pane: The why pane shows the arithmetic of a score, what would change it, the raw record. -> WhyPane
- why_rows: The rows of a why pane at each depth. -> rows_of
"""
