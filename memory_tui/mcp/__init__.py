"""The MCP server that gives agents the two tools of OpenClaw's memory."""
