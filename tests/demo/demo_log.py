"""The demo's log of what agents asked, made by asking: each question over the notes that were there on its day.

`python -m tests.demo.demo_log` writes `memory_tui/demo/asked.jsonl` anew; questions, ages, clients and times stay.
"""

import datetime as dt
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_tui import demo
from memory_tui.cancel import Stop
from memory_tui.mcp import tools as calls
from memory_tui.mcp.tools import AnswerRules, Call
from memory_tui.mcp.wire import Caller
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recall_log import LoggedHit, RecallEntry
from tests.support.workspace import options_in, synced

ASKED = Path(demo.__file__).with_name("asked.jsonl")
TODAY = dt.date(2026, 11, 20)
_DATED = re.compile(r"\d{4}-\d\d-\d\d")
_KEPT = "query", "age", "client", "ms"


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ASKED.read_text("utf-8").splitlines()]


def answers(folder: Path) -> Iterator[tuple[dict[str, Any], RecallEntry]]:
    """Each question with what the server logs of it, the newest first; the sample lies below `folder`."""
    workspace, config = demo.materialize(folder / demo.WORKSPACE, TODAY, more=True), folder / "config.json"
    config.write_text("{}")
    for fields in reversed(questions()):
        day = TODAY - dt.timedelta(days=fields["age"])
        for note in workspace.rglob("*.md"):
            # Names in the order of days; a note of a day that no month has stays where it is.
            found = _DATED.search(note.name)
            if found is not None and found[0] > day.isoformat():
                note.unlink()
        more = {"workspace": str(workspace), "config": str(config), "provider": "builtin"}
        noon = dt.datetime.combine(day, dt.time(12)).timestamp()
        with synced(options_in(folder, "sync.watch=false", **more, now=noon)) as engine:
            most = engine.plan.settings.whole("recall.maxInjectedChars")
            rules = AnswerRules(max_injected_chars=most)
            entries: list[RecallEntry] = []
            caller = Caller(fields["client"], {}, Stop())
            calls.answer(engine, Call(SEARCH, {"query": fields["query"]}, caller, rules, entries.append))
        yield fields, entries[0]


def as_line(fields: dict[str, Any], entry: RecallEntry) -> dict[str, Any]:
    """A line of the file: a recall of which the index is not named, because the demo makes its own."""
    told = {name: getattr(entry, name) for name in ("provider", "model", "mode", "ranked", "level", "outcome")}
    return {**{name: fields[name] for name in _KEPT}, **told, "hits": [_hit(hit) for hit in entry.hits]}


def template(path: str) -> str:
    """The name in the sample's templates of a note: its day as an age."""
    found = _DATED.search(path)
    try:
        day = dt.date.fromisoformat(found[0]) if found is not None else None
    except ValueError:
        day = None
    if found is None or day is None:
        return path
    age = (TODAY - day).days
    return f"{path[: found.start()]}day-{age:03}{path[found.end() :]}"


def _hit(hit: LoggedHit) -> dict[str, Any]:
    scores = {name: round(getattr(hit, name), 4) for name in ("score", "vector_score", "text_score")}
    places = {name: getattr(hit, name) for name in ("start_line", "end_line", "first_line", "last_line", "rank")}
    return {"path": template(hit.path), **places, **scores}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        made = [as_line(*one) for one in answers(Path(place))]
    ASKED.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in reversed(made)), "utf-8")
