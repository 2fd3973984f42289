"""Search: a query is retrieved once as evidence, then ranked under any settings.

- answer_level: The level of an answer tells whether the notes hold what was asked, whatever the best hit scores. ->
  level_of
- corpus: The corpus is a store in memory. -> Corpus
- corpus_file: A corpus file holds the chunks of an index as arrays that processes share by mapping it into memory. ->
  load
- dates: Dates: the time that a question speaks of.
- evidence: Evidence is all that one query retrieves, before any knob applies. -> Evidence
- excerpts: Excerpts are what an agent reads of an answer: passages around what matched, within a budget of characters.
  -> excerpts
- formulas: The formulas of scoring: one pure function each, with its source. -> mmr
- gate: The gate gives each candidate its verdict. -> pass_gate
- index_in_memory: An index in memory between queries. -> IndexInMemory
- keyword: Keyword search of a question or of its parts: OpenClaw's way, ours, or word by word without vectors. ->
  Matcher
- lexical: Lexical search is the keyword side of OpenClaw 2026.9. -> search
- meaning: Meaning: how near each chunk is to a question by their vectors.
- passages: Passages: what chunks are made of.
- path_search: Path search finds notes by the words of their paths, as OpenClaw 2026.9 does. -> PathIndex
- postings: Postings in memory give the bm25 of words without asking FTS5 for every match of every query. ->
  PostingLists
- postings_file: A postings file holds where the words of an index stand, as arrays that processes share by mapping it
  into memory. -> load
- rank: Ranking: evidence becomes a trace under one set of settings. -> rank
- retrieve: Retrieval turns a query into evidence for any profile or knob. -> gather
- rules_2026_9: Rules of OpenClaw 2026.9 as pure functions, as in release 2026.9.6. -> Hit
- score: Scores: the evidence of both sides becomes one number for each candidate. -> score
- second_stage: The second stage looks into the first candidates. -> SecondStage
- trace: A trace is the frozen record of one search. -> Trace
"""
