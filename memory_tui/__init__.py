"""See, search and explain the Markdown memory of OpenClaw-style agents.

Markdown files are the truth; everything else is derived, disposable and explainable. Read the package in the
order in which a memory travels through it:

    workspace -> embed -> index -> search -> explain -> tune | curate -> agent -> engine -> cli | tui
"""

__version__ = "0.1.0"
