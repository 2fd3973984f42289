"""Explanations of a ranking: why, why not, what would change it. Nothing here writes."""
