"""`python -m memory_tui` is `memory-tui`."""

import sys

from memory_tui.cli.main import main

sys.exit(main())
