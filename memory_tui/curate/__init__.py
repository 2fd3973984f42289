"""Change the notes: every change is shown first, written in one step, kept in a journal, and can be undone.

The modules in reading order: record (what a change is), lines and merge (text), folder, lease, swap and write (files),
journal, recover, outside and curator (keeping what was done); capture, emptied, promote, tidy and headings (the
changes); budget, links, days, history and preview (what a person looks at before and after).
"""
