"""Installs the real programs that tests drive, so that no test waits for npm: python -m tests.support.real_programs."""

from collections.abc import Callable, Iterator

import pytest

from tests.support import coding_agents, memory_lancedb, qmd, real_openclaw


def _programs() -> Iterator[tuple[str, Callable[[], str]]]:
    for release in (real_openclaw.NEWEST, real_openclaw.OLDEST):
        yield f"OpenClaw {release}", lambda release=release: real_openclaw.openclaw(release)[-1]
    yield "OpenClaw's plug-in memory-lancedb", lambda: str(memory_lancedb.packages())
    yield f"QMD {qmd.VERSION}", qmd.program
    for package, version in coding_agents.VERSIONS.items():
        yield f"{package} {version}", lambda package=package: coding_agents.program(package)


def main() -> None:
    """Install what the tests need, and print where it is, or why it is not there."""
    for name, program in _programs():
        try:
            print(f"{name}: {program()}", flush=True)
        except pytest.skip.Exception as reason:
            print(f"{name}: {reason}", flush=True)


if __name__ == "__main__":
    main()
