"""The arguments of a server name the options of its memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memory_tui.core import profiles
from memory_tui.plan import Options

_PATHS = ("workspace", "config", "index", "qmd-home")
_TEXTS = ("agent", "provider", "backend", "memories")
_NAMES = (*_PATHS, *_TEXTS, "profile", "set", "active-project", "extra")


def words_of(options: Options) -> list[str]:
    """The arguments, with whole paths, for a program that runs in any folder."""
    words: list[str] = []
    for name in (*_PATHS, *_TEXTS):
        if value := getattr(options, name.replace("-", "_")):
            words += [f"--{name}", _whole(value) if name in _PATHS else value]
    for key, value in options.changes:
        words += ["--profile", value] if key == "profile" else ["--set", f"{key}={value}"]
    for project in options.projects:
        words += ["--active-project", project]
    for path in options.extra:
        words += ["--extra", _whole(path)]
    return words


def options_of(words: Sequence[str]) -> Options:
    """The options that a server with the command line `words` takes; words that choose no memory are passed over."""
    given: dict[str, list[str]] = {name: [] for name in _NAMES}
    changes: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        name = rest.pop(0).removeprefix("--")
        if name not in given or not rest:
            continue
        value = rest.pop(0)
        given[name].append(value)
        if name in ("profile", "set"):
            key, _, text = value.partition("=")
            changes.append(("profile", value) if name == "profile" else (key, text))
    last = {name: values[-1] for name, values in given.items() if values}
    return Options(
        workspace=last.get("workspace"),
        config=last.get("config"),
        index=last.get("index"),
        agent=last.get("agent", ""),
        provider=last.get("provider", ""),
        backend=last.get("backend", ""),
        qmd_home=last.get("qmd-home"),
        memories=last.get("memories", ""),
        changes=tuple(changes),
        projects=tuple(given["active-project"]),
        extra=tuple(given["extra"]),
    )


def of_agent(options: Options, workspace: Path) -> Options:
    """`options` for an agent's server: the memory of `workspace`, ranked by our own profile where none was chosen."""
    changes = options.changes
    if not any(key == "profile" for key, _ in changes):
        changes = (*changes, ("profile", profiles.OWN))
    return replace(options, workspace=str(workspace), changes=changes)


def _whole(path: str) -> str:
    return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 - an unknown user is no error
