"""Tuning by evidence: saved queries with judgments, metrics over them, a knob search.

- config_patch: Tuned knobs as a patch of the configuration, comments kept. -> patch
- evaluate: An evaluation asks saved queries once, then measures them under any settings. -> score
- judgments: Judgments: saved queries, the lines that answer them, the file that keeps both. -> Notebook
- knob_search: The knob search finds settings on one half of the judgments, then tests them on the other. -> tune
- metrics: Metrics of an answer: recall, MRR, novelty nDCG, noise, their uncertainty. -> measure
"""
