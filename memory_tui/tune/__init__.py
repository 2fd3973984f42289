"""Making it better: labelled questions, metrics over them, and a search of the knobs that may say "no evidence"."""
