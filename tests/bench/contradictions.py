"""Of the contradictions that the inbox shows, how many are worth a look, by labels made before the rules.

python tests/bench/contradictions.py [--logs FOLDER ...]

`--logs` are folders of workspaces, such as recorded conversations; nothing in them is labelled as worth a look.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
import tempfile
import time
from pathlib import Path

from measure import begin, show

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_tui.demo import demo
from memory_tui.inbox.contradictions import pairs
from memory_tui.inbox.entries import DatedNote, note_items
from memory_tui.workspace.notes import shown_day

PLANTED = Path(__file__).parents[1] / "inbox" / "contradictions"
TODAY = dt.date(2026, 11, 21)


def found(folder: Path, today: dt.date | None = None) -> set[tuple[str, str]]:
    """The pairs of a workspace by their places, as of its newest log where no day is given."""
    paths = {path.relative_to(folder).as_posix(): path.read_text("utf-8", "replace") for path in folder.rglob("*.md")}
    notes = [DatedNote(path, text, shown_day(path)) for path, text in sorted(paths.items())]
    today = today or max((note.day for note in notes if note.day), default=TODAY)
    items = [item for note in notes for item in note_items(note)]
    both = ((older.item, newer.item) for older, newer, _ in pairs(items, today))
    return {(f"{one.note.path}:{one.first}", f"{other.note.path}:{other.first}") for one, other in both}


def tell(name: str, shown: set[tuple[str, str]], worth: set[tuple[str, str]]) -> None:
    """Print how many of `shown` are worth a look, and the others."""
    right = len(shown & worth)
    share = f"{right / len(shown):.0%} of those shown" if shown else "nothing is shown"
    show(f"{name}: shown, worth a look of them, worth a look at all", f"{len(shown)}, {right}, {len(worth)}", share)
    for older, newer in sorted(shown - worth):
        print(f"    in vain: {older} and {newer}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", nargs="*", type=Path, default=[], metavar="FOLDER")
    given = parser.parse_args()
    begin(__doc__)
    labels = json.loads((PLANTED / "labels.json").read_text("utf-8"))
    tell("planted", found(PLANTED, TODAY), set(map(tuple, labels["planted"])))
    with tempfile.TemporaryDirectory() as name:
        notes = demo.materialize(Path(name) / "notes", TODAY)
        tell("the sample workspace", found(notes, TODAY), set(map(tuple, labels["demo"])))
    for folder in given.logs:
        workspaces = [path for path in sorted(folder.iterdir()) if path.is_dir()]
        began = time.process_time()
        shown = {(f"{path.name}/{one}", other) for path in workspaces for one, other in found(path)}
        spent = (time.process_time() - began) * 1000
        tell(f"{folder.parent.name}, {len(workspaces)} workspaces, {spent:.0f} ms of CPU", shown, set())


if __name__ == "__main__":
    main()
