"""Results as text for a person, the same for command line, MCP, screen.

- as_text: Answers, explanations, comparisons as lines of text. -> text
- edit_text: Edits of notes as remedies, in words: what each adds, what it does to this question, to others. -> lines
- evaluation: Evaluations as lines of text or as JSON-ready data. -> scorecard_lines
- hit_text: Hit text is what a list says of a hit: the name of its note, its title, the words that matter, its age.
  -> hit_text
- host_text: What OpenClaw has on disk as text: its configuration, its own index. -> comparison
- ltm_text: Long-term memories as lines of text or as JSON-ready data. -> search
- past_text: Past questions in words: why a line never came, which lines none reached, what other settings would do.
  -> never
- qmd_text: Answers, comparisons, the state of QMD as lines of text or as JSON-ready data. -> lines
- share_text: Shares in words: what each word gives to bm25, each word or line of a chunk to its cosine. -> share_lines
- report: A report is one file about one question: hits, sums, misses, profiles side by side, doctor. -> page
- score_bar: The bar of a score shows what its parts give: vector, text, what is added, what age takes. -> score_bar
- status_text: The status as lines of text: workspace, index, provider, freshness. -> status
- terminal: A terminal shows hits as the screen does: bars, titles, marked words, two lines a hit. -> hits
"""
