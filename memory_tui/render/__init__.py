"""Results as text for a person, the same for command line, MCP, screen.

- as_text: Answers, explanations, comparisons as lines of text. -> text
- evaluation: Evaluations as lines of text or as JSON-ready data. -> scorecard_lines
- host_text: What OpenClaw has on disk as text: its configuration, its own index. -> comparison
"""
