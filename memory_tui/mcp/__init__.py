"""The MCP server that gives agents the two tools of OpenClaw's memory.

- host: The host of the server's memory: opened when first needed, shared by threads, closed at the end. -> Host
- resources: Notes as MCP resources: a list with sizes, the text of one by its URI. -> page
- sdk: The MCP SDK is loaded without its HTTP half, with its models built on first use. -> load
- server: The MCP server speaks over stdio: tools, resources, the recall rule as a prompt. -> serve
- tools: The two tools of OpenClaw's memory: memory_search, memory_get. -> memory_search
- types: The types of the tools' arguments, of their answers; JSON schemas are made of them. -> SearchAnswer
- wire: Lines that are no MCP message get the JSON-RPC error that the SDK leaves out. -> Answered
"""
