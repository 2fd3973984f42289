"""Where hosts cut MEMORY.md: exact to the character at the limits, with multi-byte text and CRLF."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.jsstring import WHITESPACE
from memory_tui.notes.budget import CLAUDE_CODE, Cut, HostLimit, effect, hosts, in_prompt, measure, shares
from tests.support.config_text import parsed
from tests.support.npm import CACHE, node
from tests.support.waiting import LONG
from tests.support.workspace import put_all

TEXT = st.text(st.sampled_from("ab \n\r日é😀"), max_size=80)
CRLF = b"".join(b"line %02d\r\n" % n for n in range(10))
LINES = b"".join(b"- %d\n" % n for n in range(201))


def units(text):
    """The UTF-16 units of a text, as JavaScript indexes it."""
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(data), 2)]


def offset(text, line, column):
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


@pytest.mark.parametrize(
    ("data", "host", "unit", "used", "cut"),
    [
        (None, HostLimit("openclaw"), "characters", 0, None),
        (b"\n \n", CLAUDE_CODE, "bytes", 0, None),
        (b"x" * 20_000, HostLimit("openclaw"), "characters", 20_000, None),
        # White space at the end does not count.
        (b"x" * 20_000 + b" \r\n\n", HostLimit("openclaw"), "characters", 20_000, None),
        (b"x" * 20_001, HostLimit("openclaw"), "characters", 20_001, Cut(1, 14_001, 1, 16_002, 2_001)),
        (("é" * 10).encode(), HostLimit("openclaw", 10), "characters", 10, None),
        (("😀" * 5).encode(), HostLimit("openclaw", 10), "characters", 10, None),
        # The head has 35 characters: three lines of nine and eight more; the tail has ten, without the last line end.
        (CRLF, HostLimit("openclaw", 50), "characters", 88, Cut(4, 9, 9, 7, 43)),
        (LINES[: -len(b"- 200\n")], CLAUDE_CODE, "bytes", 1_089, None),
        (LINES, CLAUDE_CODE, "lines", 201, Cut(201, 1, 0, 0, 1)),
        (("é" * 249 + "\r\n").encode() * 51, CLAUDE_CODE, "bytes", 500 * 51 - 2, Cut(51, 1, 0, 0, 499)),
        (("é" * 249 + "\r\n").encode() * 50, CLAUDE_CODE, "bytes", 24_998, None),
        (b"x" * 25_001, CLAUDE_CODE, "bytes", 25_001, Cut(1, 25_001, 0, 0, 1)),
    ],
    ids=range(13),
)
def test_where_a_host_cuts(data, host, unit, used, cut):
    found = measure(data, host)
    assert (found.used, found.cut) == (used, cut)
    assert found.unit == unit or cut is None


@given(TEXT, st.integers(5, 60))
def test_what_is_kept_is_what_javascript_keeps(text, limit):
    found = measure(text.encode(), HostLimit("openclaw", limit))
    trimmed = text.rstrip(WHITESPACE)
    all_units = units(trimmed)
    assert found.used == len(all_units)
    assert (found.cut is not None) == (len(all_units) > limit)
    if found.cut is not None:
        head, tail = int(limit * 0.7), int(limit * 0.2)
        first = "".join(all_units[:head]).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        last = "".join(all_units[-tail:]).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        assert trimmed[: offset(text, found.cut.line, found.cut.column)] == first
        assert trimmed[offset(text, found.cut.until_line, found.cut.until_column) :] == last


@given(st.integers(1, 400), st.integers(1, 100_000))
def test_newer_releases_never_give_more_than_the_limit(limit, more):
    length = limit + more
    head, tail = shares(length, limit, "MEMORY.md", newer=True)
    assert 0 <= tail <= head <= limit or (head, tail) == (0, 0)
    assert head + tail < limit


def test_the_configuration_names_the_limit():
    def found(text):
        return hosts(parsed(text), Path("workspace"))[0]

    assert found("{}") == HostLimit("openclaw", 20_000, False, "OpenClaw's default")
    named = found("{agents: {defaults: {bootstrapMaxChars: 12000, memorySearch: {}}}}")
    assert (named.limit, named.newer) == (12_000, False)
    assert "openclaw.json:1" in named.origin
    total = found("{agents: {defaults: {bootstrapTotalMaxChars: 9000}}, memory: {search: {}}}")
    assert (total.limit, total.newer) == (9_000, True)


def test_openclaw_reads_by_its_own_file_whatever_file_the_search_goes_by(tmp_path, monkeypatch):
    file = tmp_path / "openclaw.json"
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", str(file))
    own, workspace = parsed("{}", name="config.json"), tmp_path / "notes"

    def limit(of):
        return hosts(own, of)[0].limit

    assert own.kind == "own"
    assert limit(workspace) == 20_000, "there is no such file"
    file.write_text(json.dumps({"agents": {"defaults": {"workspace": str(workspace), "bootstrapMaxChars": 4000}}}))
    assert limit(workspace) == 4_000
    assert limit(tmp_path / "other") == 20_000, "it speaks of another workspace"
    file.write_text("{agents:")
    assert limit(workspace) == 20_000, "OpenClaw does not start with it"


def test_the_effect_of_a_change_is_a_sentence():
    host = HostLimit("openclaw", 100)
    assert effect(b"x" * 50, b"x" * 90, host) == "OpenClaw: 50 -> 90 characters (limit 100)."
    assert effect(b"x" * 50, b"x\n" * 60, host) == (
        "OpenClaw: 50 -> 119 characters (limit 100); it cuts out lines 36 to 49: 29 characters are not read (its marker"
        " needs room, too)."
    )
    assert "lines" in effect(b"x", b"x\n" * 300, CLAUDE_CODE)
    assert measure(b"x" * 119, host).cut.lines == "a part of line 1"


NEWER = "{agents: {defaults: {bootstrapMaxChars: %d, bootstrapTotalMaxChars: %d}}, memory: {search: {}}}"


def left(folder, files, limits):
    """What OpenClaw reads of MEMORY.md beside `files`."""
    put_all(folder, files)
    return hosts(parsed(NEWER % limits), folder)[0]


def test_the_files_of_the_prompt_share_one_limit_and_memory_md_is_the_last(tmp_path):
    assert left(tmp_path, {"SOUL.md": "x\n"}, (900, 2_000)).limit == 900
    assert left(tmp_path, {"AGENTS.md": "x" * 950}, (900, 1_200)).limit == 1_200 - 900 - 1
    assert left(tmp_path, {"USER.md": "x" * 9_000}, (5_000, 6_000)).limit == 6_000 - 950 - 1 - 4_000
    assert left(tmp_path, {"AGENTS.md": "x" * 9_000}, (5_000, 6_000)).limit == 1


_SCRIPT = """
import { pathToFileURL } from 'node:url';
import { readdirSync, readFileSync } from 'node:fs';
const [folder, limits, files] = process.argv.slice(2);
for (const name of readdirSync(folder).filter((name) => name.startsWith('bootstrap-') && name.endsWith('.mjs'))) {
  if (!readFileSync(`${folder}/${name}`, 'utf8').includes('function buildBootstrapContextFiles(')) continue;
  const found = await import(pathToFileURL(`${folder}/${name}`).href);
  const build = Object.values(found).find((one) => one?.name === 'buildBootstrapContextFiles');
  if (!build) continue;
  const [maxChars, totalMaxChars] = JSON.parse(limits);
  console.log(JSON.stringify(build(JSON.parse(readFileSync(files, 'utf8')), { maxChars, totalMaxChars })));
  process.exit(0);
}
process.exit(3);
"""


@pytest.mark.real_host
@pytest.mark.parametrize("limits", [(20_000, 60_000), (3_000, 9_000), (700, 2_000)])
def test_the_real_program_takes_as_many_characters_of_memory_md(tmp_path, limits):
    package = CACHE / "openclaw-2026.9.6" / "node_modules" / "openclaw" / "dist"
    if not package.is_dir():
        pytest.skip("OpenClaw 2026.9.6 is not installed in the cache of the tests")
    line = "a line of a note with an emoji 😀 and words\n"
    files = {"AGENTS.md": "short\n", "IDENTITY.md": "me\n", "SOUL.md": line * 60}
    files |= {"USER.md": line * 120, "MEMORY.md": line * 550}
    said = [
        {"name": name, "path": f"/w/{name}", "missing": name not in files, "content": files.get(name, "")}
        for name in ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")
    ]
    script = tmp_path / "prompt.mjs"
    script.write_text(_SCRIPT)
    (tmp_path / "files.json").write_text(json.dumps(said))
    words = [node(), str(script), str(package), json.dumps(limits), str(tmp_path / "files.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG, check=True)
    theirs = next(units(one["content"]) for one in json.loads(done.stdout) if Path(one["path"]).name == "MEMORY.md")
    ours = units(in_prompt(files["MEMORY.md"], left(tmp_path, files, limits)))
    # Half an emoji is dropped at a cut.
    assert abs(len(ours) - len(theirs)) <= 4, (len(ours), len(theirs))
