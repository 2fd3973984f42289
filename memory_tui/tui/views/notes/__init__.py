"""View 1: the notes, with the views that change them.

- annotations_view: The annotations view lists the entries of a curated note with what they are given; hits move while
  keys turn it. -> AnnotationsView
- browse: View 1 is the list of notes beside the note under the cursor. -> BrowseView
- edit: The editor of a note saves only over the text it opened; drafts survive. -> EditView
- history: The history lists changes of notes, newest first, with their differences. -> HistoryView
- note_actions: Note actions change notes from any view with a reader, for the marked notes too. -> NoteActions
- note_pane: The note pane shows a note. -> NotePane
- resolve: A conflict is resolved part by part. -> Resolve
- trust_view: The trust view lists what OpenClaw's ledger says of each note; one is repaired after its whole text was
  read. -> TrustView
"""
