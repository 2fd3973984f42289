"""Labelled notes of the inbox: a line of a text below `tests/inbox/field` ends with the kind of its finding."""

import datetime as dt
from collections import Counter, defaultdict
from pathlib import Path

from memory_tui.inbox import DatedNote, Findings, checks
from memory_tui.inbox.checks import InboxInputs
from memory_tui.workspace.notes import shown_day
from tests.support.secret_samples import lines

TODAY = dt.date(2026, 11, 21)
FEWEST = 12
"""A kind with fewer labelled places is not measured."""
FIELD = Path(__file__).parents[1] / "inbox/field"
Labels = set[tuple[str, str, int]]


def inputs(texts: dict[str, str]) -> InboxInputs:
    """What the checks read where these are all notes."""
    notes = [DatedNote(path, text, shown_day(path)) for path, text in texts.items()]
    places = {*texts, *(folder.as_posix() for path in texts for folder in Path(path).parents)}
    return InboxInputs(notes, TODAY, places.__contains__)


def labelled() -> dict[str, tuple[InboxInputs, Labels]]:
    """Return the labelled workspaces by name, with kind, path and line of all that is to be found."""
    spaces = {file.stem: _read(file.read_text(encoding="utf-8")) for file in sorted(FIELD.glob("*.txt"))}
    for name in ("work", "held", "third", "fourth", "fifth", "sixth", "seventh"):
        text, wanted = "# Notes\n", Labels()
        for row, spans in lines(name):
            wanted |= {("secret", "MEMORY.md", text.count("\n") + row.count("\n", 0, at) + 1) for at, _ in spans}
            text += f"{row}\n\n"
        spaces[f"secrets {name}"] = inputs({"MEMORY.md": text}), wanted
    return spaces


def found(findings: Findings) -> Labels:
    rows = ((row.kind, row.place) for row in findings.suggestions)
    return {(kind, place.path, line) for kind, place in rows for line in range(place.first, place.last + 1)}


def measured() -> dict[str, tuple[int, int, int, int]]:
    """Return by kind how many lines were shown, were right and were to be found, and how many places that is.

    Copies are counted by their groups, because one cause makes many of them.
    """
    tallies = [Counter[str]() for _ in range(4)]
    for notes, wanted in labelled().values():
        findings = checks.examine(notes, kinds=checks.BY_KIND)
        seen = found(findings)
        for tally, rows in zip(tallies, (seen, seen & wanted, wanted), strict=False):
            tally.update(kind for kind, *_ in rows)
        for group in findings.groups:
            joined = group.kind in ("copied file", "copied block")
            tallies[3][group.kind] += 1 if joined else len(group.suggestions)
    shown, right, expected, places = tallies
    return {kind: (shown[kind], right[kind], expected[kind], places[kind]) for kind in checks.BY_KIND}


def _read(text: str) -> tuple[InboxInputs, Labels]:
    texts: dict[str, list[str]] = defaultdict(list)
    wanted, path = Labels(), ""
    for row in text.splitlines():
        if row.startswith("@ "):
            path = row[2:]
            continue
        line, _, kind = row.partition(" ⟦")
        texts[path].append(line)
        if kind:
            wanted.add((kind.rstrip("⟧"), path, len(texts[path])))
    return inputs({path: "\n".join(rows) + "\n" for path, rows in texts.items()}), wanted
