"""Passages: what chunks are made of.

- cut: Passages are what a chunk is made of. -> cut
- measures: How a question measures passages: by their words, by their meaning, by their letters. -> MeasuredChunks
"""
