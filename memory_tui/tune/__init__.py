"""Tuning by evidence. There are saved queries with judgments, metrics over them, and a knob search.

- config_patch: Tuned knobs as a patch of the configuration, comments kept. -> patch
- evaluate: An evaluation asks saved queries once, then measures them under any settings. -> score
- judgments: Judgments say which lines answer a saved query. -> Notebook
- knob_search: The knob search finds settings on one half of the judgments, then tests them on the other. -> tune
"""
