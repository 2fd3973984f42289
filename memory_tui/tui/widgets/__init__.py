"""The panes of the views.

- calendar: The calendar shows a sign a day: recalls, size, findings of the notes of that day. -> Calendar
- curves: Curves are plotted in braille, with thresholds, an axis, words that say the same. -> Curves
- edit_area: The text of a note while it is edited: Markdown in the reader's colours, what was found, what others
  changed. -> EditArea
- file_tree: The file tree lists notes in groups, each with its title, age, recalls. -> FileTree
- first_steps: First steps: five things to do once, each ended by doing it. -> FirstSteps
- index_lists: The lists of the index view: its status in full, its events. -> Statements
- memory_map: The memory map counts what was written, recalled, found day by day. -> MemoryMap
- note_side: Beside a note: its state, its recalls, its links, the lines of a change. -> AboutPane
- panes: Panes stand side by side; mouse, `<` or `>` move their divider, whose place each view remembers.
  -> Panes
- plane: The plane shows chunks as points by their vectors, with the hits of a question lit up. -> Plane
- query: The query box, with the funnel that counts the chunks left after each stage. -> QueryBox
- quote: A quote shows lines of a note with the matched words, the nearest sentence, the line that was asked about.
  -> quote_rows
- reader: The reader shows a note as it is on disk, with line numbers, chunks, recalled lines. -> Reader
- results: The results list hits, gates, misses with their reasons. -> HitList
- rowlist: A list of rows of any height, drawn when they are seen. -> RowList
- scatter: The scatter shows each chunk by its score against its age, with the lines that decide. -> Scatter
- status_bars: Status bars: tabs beside the truth bar above every view, key hints below. -> TruthBar
- tune_strip: The tune strip shows the knobs of the ranking; every turn ranks again. -> TuneStrip
- why_pane: The why pane shows the arithmetic of a score, what would change it, the raw record. -> WhyPane
- why_rows: The rows of a why pane at each depth. -> rows_of
"""
