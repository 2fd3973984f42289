"""See, search and explain the Markdown memory of OpenClaw-style agents.

Markdown files are the truth; everything else is derived, disposable and explainable. A search travels workspace,
providers, index, search, explain; a change of a note travels notes, workspace. CONTRIBUTING.md shows the whole house.

`memory_tui.library` holds what programs may rely on (`memory-tui help library`).
"""

__version__ = "0.2.0"
