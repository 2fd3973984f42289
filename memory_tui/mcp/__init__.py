"""The MCP server that gives agents the two tools of OpenClaw's memory.

- arguments: The arguments of the tools, read by their recorded schemas. -> search_arguments
- dispatch: The Model Context Protocol as this server speaks it. -> Connection
- host: The host of the server's memory. -> ServedMemory
- plugin_methods: Private methods for the plugin in OpenClaw's memory slot: what the host asks beside the agent's tools.
  -> answer
- questions: A question to the memory: a call of a tool or of a private method, with all that its answer depends on. ->
  answered
- resources: Notes as MCP resources. -> page
- schemas: The JSON schemas of the tools, as they are recorded in schemas.json. -> recorded
- server: The MCP server of a memory. -> serve
- tools: The two tools of OpenClaw's memory. -> memory_search
- types: The types that the tools take or return; schemas.json is made of them. -> SearchAnswer
- wire: JSON-RPC over standard streams: one message a line; a line that is no message gets an error. -> Pipes
"""
