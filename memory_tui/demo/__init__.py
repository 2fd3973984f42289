"""The sample workspace: ten months of one household's notes, ending today.

The templates name days by their age (`memory/day-049.md`) and hold dates as `{date}`, `{date-7}`, `{long+3}`;
a dated note counts from its own day, every other text from today. So the copy is always about the last ten months,
and line numbers never change.
"""

from __future__ import annotations

import atexit
import datetime as dt
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_tui import durable, locks, recall_log, tune
from memory_tui.config.places import journal_folder
from memory_tui.config.settings import OWN_PROFILE, TUNE_KEYS, compose
from memory_tui.errors import EditRefused, IndexUnavailable, WorkspaceError
from memory_tui.hosts.wiring import SAMPLE
from memory_tui.notes.journal import Journal, left
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.sentences import ordinal

SUGGESTED: tuple[str, ...] = (
    "How is the VLAN on the Omada router set up?",
    "Who was our dentist before Dr. Hallett?",
    "Why did we drop Pi-hole?",
    "What was the cause of ERR_GATEWAY_502 the first time?",
    "麻婆豆腐要放什么酱？",
)
"""Labelled queries for somebody who sees the sample for the first time.

No note holds all the words of any of them, so keyword search that joins words with AND stays empty, while each is
answered by notes that hold some.
"""

_HERE = Path(__file__).parent
_TEMPLATE_DAY = re.compile(r"day-(\d{3})")
_PLACEHOLDER = re.compile(r"\{(date|weekday|long|month|zh)([+-]\d+)?\}")


# Names of days and months are English everywhere, because nothing here takes over the user's locale.
_FORMS: Mapping[str, Callable[[dt.date], str]] = {
    "date": dt.date.isoformat,
    "weekday": lambda day: f"{day:%A}",
    "long": lambda day: f"{day:%B} {ordinal(day.day)}",
    "month": lambda day: f"{day:%B}",
    "zh": lambda day: f"{day.month}月{day.day}日",
}


def materialize(target: Path, today: dt.date, *, more: bool = False) -> Path:
    """Write the sample workspace as it stands on `today` into `target`, and return `target`.

    With `more` it has the notes for somebody who looks around, too: what the inbox finds, a conflict, a German note.

    The same day gives the same bytes and mtimes in every time zone and locale. A note's mtime is 18:00 UTC of its
    day, an undated file's that of the last day it speaks of; today's may therefore lie some hours ahead.
    Raises WorkspaceError when `target` is a file, is not empty, or cannot be written.
    """
    try:
        durable.make_folder(target, 0o777)
        if any(target.iterdir()):
            refused = f"{target} is not empty; the sample workspace is only copied into an empty folder."
            raise WorkspaceError(refused, "Name a folder that does not exist yet.")
        texts: dict[str, str] = {}
        for folder in ("workspace", "more") if more else ("workspace",):
            for note in sorted((_HERE / folder).rglob("*.md")):
                template = note.relative_to(_HERE / folder).as_posix()
                # What more there is of a note goes on where the note ends, so that no line of it moves.
                texts[template] = texts.get(template, "") + note.read_text("utf-8")
        for template, text in texts.items():
            _write(target, template, text, today)
    except OSError as error:
        refused = f"The sample workspace cannot be written to {target}: {error.strerror or error}."
        raise WorkspaceError(refused, "Name a folder you may write to.") from error
    return target


def labelled_queries(today: dt.date) -> tuple[tune.Query, ...]:
    """Return the questions that come with the sample as it stands on `today`, each with the lines that answer it."""
    return tune.parse(_fill((_HERE / "queries.jsonl").read_text("utf-8"), today)).queries


def keep_queries(workspace: Path, config: Path, today: dt.date) -> None:
    """Save the labelled queries as those of the sample in `workspace`, whose own configuration is `config`."""
    tune.save(tune.notebook_path(workspace, config), tune.Notebook(labelled_queries(today)))


def _remove(folder: Path) -> None:
    """Remove the demo in `folder`, and what the state folder keeps of it: nobody would find it again."""
    # A process that ends by itself waits here for the thread that does it already.
    with _REMOVING:
        # A thread that was given up may still write into it, so that one try is not enough.
        for _ in range(_TRIES):
            shutil.rmtree(folder, ignore_errors=True)
        place = recall_log.recall_log_path(folder / WORKSPACE)
        journal = Journal(journal_folder(folder / WORKSPACE))
        with suppress(OSError, IndexUnavailable, EditRefused):
            recall_log.clear_log(place)
            # Of a workspace that is gone nobody locks the record any more.
            durable.remove_file(locks.lock_path(place))
            journal.clear()
        shutil.rmtree(journal.folder, ignore_errors=True)


_REMOVING, _TRIES = threading.Lock(), 20
"""Held by whoever removes a demo; and how often that is tried while another thread goes on writing."""


def _day_of(template: str, today: dt.date) -> dt.date | None:
    """Return the day of the note that is made of `template`, whose name has its age; None for an undated one."""
    match = _TEMPLATE_DAY.search(template)
    return today - dt.timedelta(days=int(match[1])) if match else None


def named(template: str, today: dt.date) -> str:
    """Return the path that a note of the sample has on `today`."""
    return _TEMPLATE_DAY.sub((_day_of(template, today) or today).isoformat(), template)


def _write(target: Path, template: str, text: str, today: dt.date) -> None:
    """Write the note that is made of a `template` and its `text`, with the time of its last edit. Raises OSError."""
    day, note = _day_of(template, today), target / named(template, today)
    # An undated note was edited on the last day that it speaks of.
    edited = day or today - dt.timedelta(days=_youngest_mention(text))
    durable.make_folder(note.parent, 0o777)
    durable.create_file(note, _fill(text, day or today).encode("utf-8"), None)
    evening = int(dt.datetime.combine(edited, dt.time(18), dt.UTC).timestamp())
    os.utime(note, (evening, evening))


def _fill(text: str, day: dt.date) -> str:
    """Return `text` with its placeholders counted from `day`; other braces stay."""
    return _PLACEHOLDER.sub(lambda hole: _FORMS[hole[1]](day + dt.timedelta(days=int(hole[2] or 0))), text)


def _youngest_mention(text: str) -> int:
    """Return the age in days of the latest past day that an undated template speaks of, else a month."""
    offsets = [int(hole[2] or 0) for hole in _PLACEHOLDER.finditer(text)]
    return min((-offset for offset in offsets if offset <= 0), default=30)


WORKSPACE = "workspace"


def leftovers() -> Iterator[str]:
    """Say of each other demo with text that is not saved how that is reached; it was killed, or still runs."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{SAMPLE}*")):
        # What cannot be read here, the notes of that demo say when they are opened.
        with suppress(OSError, EditRefused):
            if left(Journal(journal_folder(folder / WORKSPACE))):
                yield f"Another demo holds unsaved text: memory-tui {folder / WORKSPACE} opens it."


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a new folder for a demo, which is removed at the end; that of a killed one is left to the system."""
    folder = Path(tempfile.mkdtemp(prefix=SAMPLE))
    # For an end of the process that does not come back to this frame.
    atexit.register(_remove, folder)
    try:
        yield folder
    finally:
        _remove(folder)
        atexit.unregister(_remove)


def keep_recalls(workspace: Path, today: dt.date) -> None:
    """Write the log of what agents asked, as a server with the usual knobs wrote it.

    Its index of then is named by no id, because the demo makes its own; `tests/demo/demo_log.py` made the answers.
    """
    place = recall_log.recall_log_path(workspace)
    knobs = {key: knob.value for key, knob in compose(OWN_PROFILE, {}, {}).values.items() if key in TUNE_KEYS}
    for number, line in enumerate((_HERE / "asked.jsonl").read_text("utf-8").splitlines(), 1):
        fields = json.loads(line)
        # So many days ago; the questions of one day are a minute apart, in their order.
        noon = dt.datetime.combine(today - dt.timedelta(days=fields.pop("age")), dt.time(12))
        at = noon.timestamp() + number * 60
        hits = tuple(recall_log.LoggedHit(**{**hit, "path": named(hit["path"], today)}) for hit in fields.pop("hits"))
        entry = recall_log.RecallEntry(
            SEARCH, at=at, now=at, agent="main", settings=knobs, generation=1, hits=hits, **fields
        )
        recall_log.append_recall(place, entry)
