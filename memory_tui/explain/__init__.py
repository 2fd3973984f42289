"""Explanations of a ranking: why, why not, what would change it. Nothing here writes.

- absent_words: Words of a query that the index does not hold, with the notes on disk that do. -> words_elsewhere
- change_wording: Sets of changes in words. -> change_set
- claims: Claims: each statement of an explanation as a value that carries its evidence. -> of_empty
- counterfactuals: Counterfactuals find the settings that would change whether a chunk is recalled. -> flips
- decay: Decay over time tells which hits age will drop. -> fading
- landscape: The landscape: chunks as points on a plane by their vectors, in groups that are named by their words. ->
  landscape
- located_line: A line of a note, found by path or number. -> locate
- matched_words: Matched words: where the words of a query stand in a text, found as the search finds them. ->
  MatchedWords
- noise: The noise floor: the scores of unrelated queries beside those of the notes. -> measure
- rephrase: Rephrased questions: the word to add, or to leave out, that recalls a chunk. -> rephrase
- reranking: Reranking: the same evidence ranked under many settings at once. -> Reranking
- score_lines: Lines of arithmetic show as many digits as it takes to redo them. -> ScoreLine
- shares: Shares tell what each word gives to a score. -> shares_of
- stages: The stages that a candidate went through, each with its neighbours there. -> stages
- trace_json: A trace as JSON-ready data, the same record that the screen draws. -> trace
- verdicts: A verdict says what became of a line of a note: recalled, or the first gate that stopped it. -> Fate
- why: Why a chunk has its score: arithmetic that adds up line by line. -> explain
- why_never: Why a line never comes: how often each gate stopped it over many questions. -> why_never
- why_not: Why a line of a note is not recalled, or is: every gate from the roots to the limit. -> of_line
- wording: Explanations in words for a person. -> sentence
"""
