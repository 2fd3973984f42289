"""The options of a run, as the command line or a program gives them."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True):
    """What the command line asked for; None or empty where it said nothing. `now` is in seconds, for ages."""

    workspace: str | None = None
    config: str | None = None
    index: str | None = None
    provider: str = ""
    read_only: bool = False
    now: float | None = None
    changes: tuple[tuple[str, str], ...] = ()
    agent: str = ""
    once: bool = False
    """Whether one question will be asked and no more, so that little should be read for it."""
    extra: tuple[str, ...] = ()
    """Notes and folders of notes besides those that the configuration names."""
    projects: tuple[str, ...] = ()
    """Keys of the projects that the agent works on, as a person writes them."""
    backend: str = ""
    """Who searches: builtin or qmd."""
    qmd_home: str | None = None
    """Folder of QMD's configuration and index."""
    memories: str = ""
    """Folder or address of the LanceDB table of long-term memories."""
    sample: bool = False
    """Whether it is a sample workspace, beside which nobody's own long-term memories are opened."""
