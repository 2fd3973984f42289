"""Checks of machine, notes, index, provider, settings: each gives evidence, each names one fix.

- check: A check finds a state, the evidence for it, one fix. -> Check
- checks_machine: Checks of the machine: SQLite, full-text search, vectors, watching, folders, clock, terminal. ->
  CHECKS
- checks_memory: Checks of the memory: notes, index, provider, settings. -> INDEX_CHECKS
- checks_openclaw: Checks of OpenClaw's agent: whether memory-tui is its memory, what that needs, what goes on dreaming
  beside it. -> CHECKS
- checks_ltm: Checks of the long-term memories: library, table, model, journal, each with the command that mends its
  fault. -> CHECKS
- checks_qmd: Checks of QMD, step by step, each with the command that mends its fault. -> CHECKS
- runner: The doctor runs all checks side by side, each with a deadline. -> examine
"""
