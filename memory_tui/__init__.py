"""See, search and explain the Markdown memory of OpenClaw-style agents.

Markdown files are the truth; everything else is derived, disposable and explainable. Read the package in the
order in which a memory travels through it:

    workspace -> providers -> index -> search -> explain | curate -> tune | inbox | recalls -> engine -> tui | mcp

Below stand core and config, above the command line; openclaw and hosts know the programs around it.
"""

__version__ = "0.1.0"
