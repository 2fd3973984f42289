"""What leaves the app: a note for the user's editor, text for the clipboard, an answer for a file."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.curator import AppliedChange, ExternalEdit
    from memory_tui.plan import Options
    from memory_tui.tui.tuning import Tuning
    from memory_tui.tui.views.view import View

_COLON = {"hx", "helix", "micro"}
_COLON_WAIT = {"zed", "zeditor", "subl", "sublime_text"}
_GOTO = {"code", "code-insiders", "codium", "vscodium", "cursor"}
_AT_ONCE = {"open", "xdg-open"}
"""These come back before anything is edited."""
_NO_LINE = {"notepad", *_AT_ONCE}


def _words(environment: Mapping[str, str]) -> list[str]:
    chosen = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        return shlex.split(chosen) or ["vi"]
    except ValueError:
        # A quotation mark without its partner; the words are what is left to try.
        return chosen.split()


def name_of(environment: Mapping[str, str]) -> str:
    """The name of the editor's program."""
    return PurePath(_words(environment)[0]).name.removesuffix(".exe")


def command(path: str, line: int, environment: Mapping[str, str]) -> list[str]:
    """The arguments that open `path` at `line` (1-based) in $VISUAL, else $EDITOR, else vi, until it is closed."""
    words, name = _words(environment), name_of(environment)
    if name in _GOTO:
        return [*words, "--wait", "--goto", f"{path}:{line}"]
    if name in _COLON or name in _COLON_WAIT:
        return [*words, *(["--wait"] if name in _COLON_WAIT else []), f"{path}:{line}"]
    if name in _NO_LINE:
        return [*words, path]
    return [*words, f"+{line}", path]


def edit(path: str, line: int) -> str:
    """Run the editor until it ends; returns what went wrong as a sentence, or nothing."""
    words = command(path, line, os.environ)
    try:
        # Descriptor 2 is kept off the screen, and an editor may draw there.
        process = subprocess.Popen(words, stderr=sys.__stderr__)
    except OSError as error:
        return f"The editor {words[0]} could not be started: {error.strerror or error}. Set $EDITOR."
    # ctrl+c is for the editor; set after its start, because it would inherit this.
    was = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = process.wait()
    finally:
        signal.signal(signal.SIGINT, was)
    return f"The editor {words[0]} ended with status {status}." if status else ""


def hand_over(view: View) -> None:
    """Give the terminal to the editor for the note under the cursor, then keep what it made of it in the journal."""
    home = view.home
    engine, place = home.engine, view.place_in_note()
    if engine is None or place is None:
        return
    path, line = place[0], view.line_in_note()
    if any(row.path == path and row.source == "sessions" for row in (home.facts.rows if home.facts else ())):
        view.show_message("A transcript records a session, so memory-tui does not edit it.")
        return
    with view.app.suspend():
        begun, problem = None, ""
        try:
            begun = engine.notes.curator.begin_external_edit(path)
        except MemoryTuiError as error:
            problem = f"What the editor changes is not in the journal: {error.message} "
        problem += edit(begun.absolute if begun is not None else str(engine.plan.roots.workspace / path), line)
    if not engine.index.watcher.on:
        engine.index.request_sync()
    if begun is None:
        view.show_message(problem)
        return
    _keep(view, begun, path, line, problem)


@task("write", exclusive=False)
async def _keep(view: View, begun: ExternalEdit, path: str, line: int, problem: str) -> None:
    """Keep in the journal what the editor made of the note of `begun`."""
    name = name_of(os.environ)
    done = await view.home.jobs.attempt(
        lambda engine: engine.notes.curator.finish_external_edit(begun, name), write=True
    )
    if isinstance(done, MemoryTuiError):
        left = f"{one_line(path)} is as {name} left it, and not in the journal:"
        view.show_message(f"{problem} {left} {done.message} {done.next_step}".strip())
    else:
        if done is not None:
            for part in view.parts:
                part.edited(path, line)
        view.show_message(f"{problem} {_outcome(done, path, name)}".strip())
        view.home.jobs.refresh()


def _outcome(done: AppliedChange | None, path: str, name: str) -> str:
    if done is not None:
        rest = f"{one_line(done.change.title)}: kept as change {done.entry.id}; {key_of('undo')} undoes it."
        return f"{rest} {one_line(done.untold)}".strip()
    if name in _AT_ONCE:
        return f"{name} does not wait for its window: what is saved there is not in the journal."
    return f"{one_line(path)} is as it was."


_DAY = 86_400.0
MOST_REPEATED = 400
"""Characters of what was copied that a message shows."""


def on_screen(engine: Engine, tuning: Tuning | None) -> tuple[Options, Mapping[str, object]]:
    """The options that open what is on screen, with the date that was chosen there, and the knobs that were turned."""
    query, turned = engine.plan.options, tuning.turned if tuning is not None else {}
    answers = "qmd" if engine.backend.is_qmd else "builtin"
    changes = [(key, value) for key, value in query.changes if key not in turned]
    if tuning is not None and (profile := tuning.settings.word("profile")) != tuning.opened.word("profile"):
        # Its values are its own, so that no knob of them counts as turned.
        changes = [*(row for row in changes if row[0] != "profile"), ("profile", profile)]
    opened = replace(
        query,
        workspace=str(engine.plan.roots.workspace),
        changes=tuple(changes),
        backend=answers if query.backend or answers != engine.plan.backend else "",
    )
    days = tuning.days if tuning is not None else 0
    return replace(opened, now=engine.plan.clock() + days * _DAY) if days else opened, turned


def forms(
    places: Sequence[tuple[tuple[str, int, int], str]], question: str, opened: Options, turned: Mapping[str, object]
) -> dict[str, str]:
    """What may be copied of `places` in notes, each with its text: its name -> the text.

    `opened` and `turned` are the options and the knobs that show them.
    """
    from memory_tui.hosts import wiring

    memory = wiring.words_of(opened)
    if opened.now is not None:
        memory += ["--now", datetime.fromtimestamp(opened.now, UTC).isoformat(timespec="seconds")]
    texts, quotes, data, commands = [], [], [], []
    for (path, first, last), text in places:
        cited = f"{path}#L{first}-L{last}"
        texts.append(f"{text}\n\n{cited}\n")
        quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        quotes.append(f"{quoted}\n>\n> [{path}:{first}-{last}](<{cited}>)\n")
        data.append({"path": path, "startLine": first, "endLine": last, "text": text})
        lines = ["--from", str(first), "--lines", str(last - first + 1)]
        commands.append(shlex.join(["memory-tui", "get", path, *lines, *memory]))
    query = {"question": question} if question else {}
    if question:
        knobs = [word for key, value in turned.items() for word in ("--set", f"{key}={_plain(value)}")]
        commands = [shlex.join(["memory-tui", "search", question, *memory, *knobs])]
    whole: Mapping[str, object] = {**query, **data[0]} if len(data) == 1 else {**query, "places": data}
    return {
        "text with its citation": "\n".join(texts),
        "citation": "\n".join(f"{path}#L{first}-L{last}" for (path, first, last), _ in places),
        "Markdown": "\n".join(quotes),
        "JSON": json.dumps(whole, ensure_ascii=False, indent=2) + "\n",
        "the command that shows this": "\n".join(commands),
    }


def repeated(text: str) -> str:
    """What was copied, for the end of a message, where it is one line that fits: a clipboard may be out of reach."""
    return "." if "\n" in text or len(text) > MOST_REPEATED else f": {text}"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"
