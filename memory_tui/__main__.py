"""The entry of `memory-tui`, which is `python -m memory_tui` too."""

import gc
import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    # What modules are made of stays: to look through it for garbage would be a quarter of a search.
    gc.disable()
    try:
        # Here, because ctrl+c is pressed while modules load, too.
        from memory_tui.cli import main as command_line

        return command_line.main()
    except KeyboardInterrupt:
        sys.stderr.write("memory-tui: stopped by ctrl+c.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
