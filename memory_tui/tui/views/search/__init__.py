"""View 2: the search, with the views that explain, judge, tune.

- compare_profiles: Two rankings of the same evidence side by side. -> SideBySideView
- explaining: Explaining a line on a worker thread: the verdict, then what would change it, told as it is found. ->
  inquire
- fading_view: The fading view lists the hits that age will drop. -> FadingView
- injected_view: What OpenClaw puts before its agent for a message, entry by entry with its reason. -> InjectedView
- knobs: The part of the search view that turns the knobs of the ranking. -> Knobs
- lab: The lab works out reports that take time, with a stop key. -> NoiseView
- line_question: The line that a question is about, asked for by its place, a note's name, or words that stand in it. ->
  LineQuestion
- past_views: Views of past questions. -> ReplayView
- qmd_view: The answers of QMD beside those of the built-in index, row by row, with the reason where one lacks a hit. ->
  CompareQmdView
- saved_queries: The saved queries with their judgments, measured under the knobs. -> SavedQueriesView
- scatter_view: The scatter view shows score against age for the question on screen; its lines turn knobs. ->
  ScatterView
- search_explain: The part of the search view that explains a hit or a missing line. -> Explainer
- search_judge: The part of the search view that judges hits. -> Judge
- search_view: View 2 is the search. -> SearchView
- why_not_view: The view of one line under a question says why it is or is not recalled. -> WhyNotView
- write_config: Tuned knobs are shown as a change of the configuration before they are written. -> WriteView
"""
