"""Meaning: how near each chunk is to a question by their vectors.

- cosines: Cosines of a query with the chunks of an index, of most of them only where somebody asks. -> Cosines
- rounded: Rounded vectors take one byte a number. -> Rounded
"""
