"""What an agent uses: the two tools of OpenClaw's memory, served over MCP, and a log of what was asked and answered.

In reading order: memory (what is needed of an engine), schema, arguments, citations, answers, tools, files, recall_log,
replay, sdk, server, entries.
"""
