"""Tuning by evidence. There are saved queries with judgments, metrics over them, and a search of the knobs."""
