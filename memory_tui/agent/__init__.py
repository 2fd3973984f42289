"""What an agent uses: the two tools of OpenClaw's memory, served over MCP, a log of what was asked and answered, and
what a host does around a session: the prompt, the flush before compaction, the note at the end.

In reading order: memory (what is needed of an engine), schema, arguments, citations, answers, tools, files, log_file,
recall_log, marks, replay, sdk, server, entries; prompt, flush, usage, sessions, session_hook, slug, claude_code.
"""
