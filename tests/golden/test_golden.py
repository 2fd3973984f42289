"""What commands and tools answer is, member by member, what the files in `data` hold.

`MEMORY_TUI_UPDATE_GOLDEN=1 pytest tests/golden` writes them anew; a difference is a changed answer, so read it.
"""

import json
import math
import os
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.golden.workspaces import TODAY, WORKSPACES
from tests.support.commands import forked

DATA = Path(__file__).parent / "data"
CONFIGURATIONS = {
    "recommended": [],
    "openclaw-2026.3": ["--profile", "openclaw-2026.3"],
    "openclaw-2026.9": ["--profile", "openclaw-2026.9"],
    "words": ["--provider", "none"],
    "knobs": [
        *("--set", "query.hybrid.mmr.enabled=true", "--set", "query.hybrid.mmr.lambda=0.4"),
        *("--set", "query.maxResults=3", "--set", "query.minScore=0.35", "--set", "chunking.tokens=80"),
        *("--set", "recency.weight=0.2", "--set", "secondStage.weight=0", "--set", "spelling.enabled=false"),
    ],
}
_PASSING = {"timings", "bytes", "dbBytes", "pid", "since", "version"}
"""Members that differ from run to run, or from one machine or release to the next."""
_LIBRARY = re.compile(r"(SQLite|sqlite-vec) v?\d[\d.]*")
_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")
_CHUNK = {"id", "rowid", "source", "citation"}
_ROWS = {"recalled": 1, "lost": 1, "shares": 2, "flips": 3, "sets": 1, "links": 20}
_ROWS |= dict.fromkeys(("results", "words", "dropped"), 9)
"""How many members of a list stand in a file in full."""
_LINE, _TEXT = 200, 100


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    with forked(tmp_path_factory.mktemp("commands")) as running:
        yield running


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("name", WORKSPACES)
def test_answers_are_those_on_record(name, configuration, tmp_path, commands, command):
    build, questions, line = WORKSPACES[name]
    options = ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "index.sqlite")]
    options += [*build(tmp_path), "--now", f"{TODAY}T12:00:00", *CONFIGURATIONS[configuration]]

    def run(*words):
        status, out, err = command(*options, "--json", *words)
        assert out, (words, status, err)
        return {**json.loads(out), "EXIT": status, "STDERR": err.splitlines()}

    def printed(*words):
        return command(*options, *words)[1].splitlines()

    answers = {
        "search": {"explain": run("search", "--explain", questions[0])}
        | {question: run("search", question) for question in questions[1:]}
        | {f"{question} (printed)": printed("search", question) for question in questions[-1:]},
        "why": {question: run("why", question, line) for question in questions[:2]},
        "status": run("status"),
        "mcp": _tools(commands, options, tmp_path, questions[:2], line.partition(":")[0]),
    }
    places = {str(tmp_path / "notes"): "NOTES", str(tmp_path): "TMP", os.environ["HOME"]: "HOME"}
    for kind, answer in answers.items():
        _compare(DATA / f"{name}-{configuration}-{kind}.json", _plain(answer, places))


def _tools(commands, options, folder, questions, note):
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "golden", "version": "1"}}
    calls: list[tuple[str, dict[str, Any]]] = [("initialize", client)]
    calls += [("tools/call", {"name": "memory_search", "arguments": {"query": question}}) for question in questions]
    for arguments in ({"path": note, "from": 1, "lines": 3}, {"path": "memory/no-such-note.md"}):
        calls.append(("tools/call", {"name": "memory_get", "arguments": arguments}))
    requests = folder / "requests"
    lines = [
        {"jsonrpc": "2.0", "id": at, "method": method, "params": given} for at, (method, given) in enumerate(calls)
    ]
    requests.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    code = f"os.dup2(os.open({str(requests)!r}, os.O_RDONLY), 0)"
    _, out, err = commands.run(*options, "mcp", code=code, env=dict(os.environ))
    results = {answer["id"]: answer["result"] for answer in map(json.loads, out.splitlines())}
    for result in results.values():
        # The text is the same as the data, as JSON.
        assert "content" not in result or json.loads(result.pop("content")[0]["text"]) == result["structuredContent"]
    named = {
        json.dumps(params, ensure_ascii=False): results[number] for number, (_, params) in enumerate(calls) if number
    }
    return {**named, "STDERR": err.splitlines()}


def _plain(value, places, key=""):
    """Return `value` without what differs from run to run; a long text of a note as its beginning, size and sum."""
    if key in _PASSING:
        return "..."
    if isinstance(value, dict):
        if key == "settings":
            value = {name: row["value"] for name, row in value.items() if row["origin"] != "default"}
        elif key == "links":
            value = {name: member for name, member in value.items() if member}
        elif value.keys() - _CHUNK == {"startLine", "endLine", "path"}:
            return f"{value['path']}:{value['startLine']}-{value['endLine']}"
        return {_plain(name, places): _plain(member, places, name) for name, member in value.items()}
    if isinstance(value, list):
        whole, rest = value[: _ROWS.get(key, 3)], value[_ROWS.get(key, 3) :]
        rows = [_plain(row, places, key) for row in whole]
        if key in {"recalled", "lost"}:
            return rows + [[f"{row['path']}:{row['startLine']}", row["score"], row["verdict"]["kind"]] for row in rest]
        return [*rows, f"and {len(rest)} more"] if rest else rows
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if not isinstance(value, str):
        return value
    for place, name in places.items():
        value = value.replace(place, name)
    value = _DIGEST.sub(r"\1", _LIBRARY.sub(r"\1", value))
    if key in {"snippet", "text"} and len(value) > _TEXT:
        return f"{value[: _TEXT // 2]}... {len(value)} characters, sum {zlib.crc32(value.encode()):08x}"
    return value


def _alike(one, other):
    """Return whether two values are equal but for the last digits of numbers, which are the processor's."""
    if isinstance(one, float) or isinstance(other, float):
        return (
            isinstance(one, int | float)
            and isinstance(other, int | float)
            and math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-6)
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _written(value, indent=""):
    """Return JSON with sorted keys, in which what is short or flat stands in one line."""
    short = json.dumps(value, ensure_ascii=False, sort_keys=True)
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if len(short) <= _LINE or not any(isinstance(member, dict | list) for member in members):
        return short
    inner = indent + " "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {_written(value[key], inner)}" for key in sorted(value)]
        return "{\n" + ",\n".join(inner + row for row in rows) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _written(row, inner) for row in value) + f"\n{indent}]"


def _compare(file, answer):
    recorded = json.loads(file.read_text("utf-8")) if file.exists() else None
    if _alike(recorded, answer):
        return
    if os.environ.get("MEMORY_TUI_UPDATE_GOLDEN"):
        file.write_text(_written(answer) + "\n", "utf-8")
        return
    assert _written(answer).splitlines() == _written(recorded).splitlines(), (
        f"{file.name}: MEMORY_TUI_UPDATE_GOLDEN=1 writes it anew"
    )
