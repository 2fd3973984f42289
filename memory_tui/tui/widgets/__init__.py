"""The panes of the views.

- calendar: The calendar shows a sign a day. -> Calendar
- curves: Curves are plotted in braille. -> Curves
- edit_area: The text of a note while it is edited: Markdown in the reader's colours, what was found, what others
  changed. -> EditArea
- file_tree: The file tree lists notes in groups. -> FileTree
- first_steps: First steps: five things to do once, each ended by doing it. -> FirstSteps
- index_lists: The lists of the index view. -> Statements
- memory_map: The memory map counts day by day. -> MemoryMap
- note_side: The panes beside a note. -> AboutPane
- panes: Panes stand side by side; mouse, `<` or `>` move their dividers, whose places each view remembers. -> Panes
- plane: The plane shows chunks as points by their vectors, with the hits of a question lit up. -> Plane
- query: The query box, with the funnel that counts the chunks left after each stage. -> QueryBox
- quote: A quote shows lines of a note. -> quote_rows
- reader: The reader shows a note as it is on disk. -> Reader
- results: The results of a search as a list. -> HitList
- rowlist: A list of rows of any height, drawn when they are seen. -> RowList
- scatter: The scatter shows each chunk by its score against its age, with the lines that decide. -> Scatter
- status_bars: Status bars stand in every view. -> TruthBar
- tune_strip: The tune strip shows the knobs of the ranking; every turn ranks again. -> TuneStrip
- why_pane: The why pane shows the arithmetic of a score. -> WhyPane
- why_rows: The rows of a why pane at each depth. -> rows_of
"""
