"""Changes of notes. Each is shown first, written in one step, journaled, and undone on request.

- annotate: Annotating plans the comments of an entry of MEMORY.md or USER.md that steer its recall. -> annotate
- budget: The budget of a note is how much of it the host gives the agent. -> measure
- changes: A change of notes, file by file. -> Change
- curator: The curator is the way to change a note: preview, journal, write, undo. -> Curator
- diff: A diff shows a change line by line; `masked_lines` hides its secrets, for a screen. -> lines
- git: What git knows of a note. -> History
- journal: The journal keeps every change with its inverse. -> Journal
- lease: A read lease proves that no process is writing a file. -> quiet
- links: Links between notes. -> LinkIndex
- merge: Three-way merge of a note by lines; a conflict remains where both sides changed the same lines. -> merge
- move_back: Moving back takes entries that OpenClaw promoted out of MEMORY.md; their daily notes hold them again, or
  still. -> move_back
- note_bytes: The only module that changes a person's note. -> replace
- note_edits: Candidate edits: small changes of a note by which one of its lines may come to be found, smallest first.
  -> candidates
- note_write: A decided change is merged with what others wrote meanwhile. -> write
- planner: The planner decides a change: a wish (capture, promote, move, delete, archive) becomes new text; nothing is
  written. -> Planner
- promote: Promoting plans how lines of a daily log come into MEMORY.md, below a heading, copied or moved. -> promote
- recover: Recovery finishes or forgets a change that a crash cut off. -> recover
- restore: Restoring brings back what a note held before. -> versions
- what_if: What a change of notes would do to the answer of a query, before it is made. -> preview
"""
