"""Results as text for a person. Command line, MCP and screen show the same.

- as_text: Results as lines of text. -> print_lines
- edit_text: Edits of notes as remedies, in words. -> lines
- evaluation: Evaluations as lines of text or as JSON-ready data. -> scorecard_lines
- hit_text: Hit text is what a list says of a hit. -> hit_text
- host_text: What OpenClaw has on disk, as text. -> comparison
- ltm_text: Long-term memories as lines of text or as JSON-ready data. -> search
- noise_text: The noise floor as lines of text or as JSON-ready data. -> lines
- past_text: Past questions in words: why a line never came, which lines none reached, or what other settings would do.
  -> never
- qmd_text: What QMD gives as lines of text or as JSON-ready data. -> lines
- share_text: Shares in words. -> share_lines
- report: A report is one file about one question. -> page
- score_bar: The bar of a score shows what its parts give. -> score_bar
- status_text: The status as lines of text. -> status
"""
