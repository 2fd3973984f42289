"""Results as text for a person, the same for command line, MCP, screen.

- as_text: Answers, explanations, comparisons as lines of text. -> text
- evaluation: Evaluations as lines of text or as JSON-ready data. -> scorecard_lines
"""
