"""See, search and explain the Markdown memory of OpenClaw-style agents.

Markdown files are the truth; everything else is derived, disposable and explainable. A search travels workspace,
providers, index, search, explain; a change of a note travels notes, workspace. CONTRIBUTING.md shows the whole house.

`memory_tui.library` holds what programs may rely on (`memory-tui help library`).
"""

import os

# Before any module imports numpy: a few megabytes of vectors are multiplied fastest by one thread, and more threads
# would wait for each other when cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.2.0"
