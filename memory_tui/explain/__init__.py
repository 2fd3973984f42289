"""Explanations of a ranking: why, why not, what would change it. Nothing here writes.

- claims: Claims: each statement of an explanation as a value that carries its evidence. -> of_empty
- counterfactuals: Counterfactuals find the setting or the word that would change whether a chunk is recalled. -> flips
- decay: Decay over time: which hits age will drop, on which day, at which gate. -> fading
- elsewhere: Where words of a query stand that the index does not hold. -> words_elsewhere
- located_line: A located line: what is known of it before anything is asked. -> locate
- noise: The noise floor: the scores of unrelated queries beside those of the notes. -> measure
- score_lines: Lines of arithmetic show as many digits as it takes to redo them. -> ScoreLine
- stages: The stages that a candidate went through, each with its neighbours there. -> stages
- trace_json: A trace as JSON-ready data, the same record that the screen draws. -> trace
- verdicts: A verdict says what became of a line of a note: recalled, or the first gate that stopped it. -> Fate
- why: Why a chunk has its score: arithmetic that adds up line by line. -> explain
- why_not: Why a line of a note is not recalled. -> find
- wording: Verdicts, reasons, modes in words for a person. -> sentence
"""
