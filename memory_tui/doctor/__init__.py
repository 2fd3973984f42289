"""Checks of machine, notes, index, provider, settings: each gives evidence, each names one fix.

- check: A check finds a state, the evidence for it, one fix. -> Check
- checks_machine: Checks of the machine: SQLite, full-text search, vectors, watching, folders, clock, terminal. ->
  CHECKS
- checks_memory: Checks of the memory: notes, index, provider, settings. -> INDEX_CHECKS
- runner: The doctor runs all checks side by side, each with a deadline. -> examine
"""
