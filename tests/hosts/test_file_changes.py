"""Changes of a host's files: what stands there stays, and taking a change back leaves no trace of it."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.config.json5 import SourceText, parse_json5
from memory_tui.errors import ConfigError
from memory_tui.hosts.connection import applied, reverted
from memory_tui.hosts.wiring import FileEdit, HostChange

JSON, TOML = Path("settings.json"), Path("config.toml")
SERVER = {"command": "/opt/memory-tui", "args": ["mcp", "--workspace", 'a "b"'], "required": True}
TABLE = HostChange("table", ("mcp_servers", "memory"), SERVER)
CHANGES = (
    HostChange("member", ("mcpServers", "memory"), SERVER),
    HostChange("item", ("hooks", "SessionStart"), {"hooks": [{"type": "command", "command": "x"}]}),
    HostChange("item", ("plugins", "load", "paths"), "/a/folder"),
    HostChange("member", ("plugins", "slots", "memory"), "memory-tui"),
)

names = st.sampled_from(
    ["mcpServers", "hooks", "SessionStart", "plugins", "load", "paths", "slots", "memory", "a", "b"]
)
leaves = st.one_of(st.integers(0, 9), st.text('xy"/é', max_size=3), st.booleans(), st.none())
trees = st.dictionaries(
    names,
    st.recursive(
        leaves, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3))
    ),
    max_size=4,
)


def read(data):
    return parse_json5(SourceText(JSON, (data or b"{}").decode())).plain()


def put(data, change):
    *above, last = change.keys
    for key in above:
        data = data.setdefault(key, {})
    if change.kind == "member":
        data[last] = change.value
    elif change.value not in data.setdefault(last, []):
        data[last].append(change.value)


@given(trees, st.sampled_from([None, 2, "\t"]), st.permutations(CHANGES))
def test_json_says_what_it_said_and_the_change(tree, indent, changes):
    before = json.dumps(tree, indent=indent, ensure_ascii=False).encode()
    edit = FileEdit(JSON, tuple(changes))
    try:
        after, made = applied(edit, before)
    except ConfigError:
        # Something else than an object, or than a list, stands where the change leads.
        return
    wanted = json.loads(before)
    for change in changes:
        put(wanted, change)
    assert json.loads(after) == wanted
    assert read(reverted(FileEdit(JSON, made), after) if made else after) == tree
    # What somebody else wrote meanwhile stays.
    more = {**json.loads(after), "z": 1}
    other = json.dumps(more, indent=4).encode()
    assert read(reverted(FileEdit(JSON, made), other) if made else other) == {**tree, "z": 1}


WRITTEN = """\
{
  // mine
  "numStartups": 3, // counted
  "permissions": {"allow": ["Bash(ls)"]},
  /* theirs */
  "hooks": {
    "SessionStart": [
      {"hooks": []} // first
    ]
  },
  "plugins": { load: { paths: [ '/one', '/two' ] } },
}
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        *(WRITTEN, WRITTEN.replace("3, //", "3 , //"), "{}\n", '{ "a": 1 }', "\ufeff{}", "{a: 1,}", "{ a: 1 , }"),
        '{ plugins: { load: { paths: ["/x",] }, slots: { a: 1, /* z */ }, }, hooks: { SessionStart: [{ a: 1, }, ] } }',
        '{"plugins": {"slots": {"memory": "memory-core" /* theirs */}}}',
    ],
)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: ".".join(change.keys))
def test_comments_and_layout_come_back(change, text, newline):
    before = text.replace("\n", newline).encode()
    after, made = applied(FileEdit(JSON, (change,)), before)
    assert after != before
    for comment in (b"// mine", b"// counted", b"/* theirs */", b"// first"):
        assert after.count(comment) == before.count(comment)
    assert reverted(FileEdit(JSON, made), after) == before


def test_an_edited_change_is_named_with_its_line():
    after, made = applied(FileEdit(JSON, CHANGES[3:]), b"{}\n")
    edited = after.replace(b'"memory-tui"', b'"other"')
    with pytest.raises(ConfigError, match=r"plugins\.slots\.memory was edited after memory-tui wrote it \(line 4"):
        reverted(FileEdit(JSON, made), edited)


@pytest.mark.parametrize(
    "text", ['{"plugins": 3}', '{"plugins": {"load": []}}', "[]", "{", '{"plugins": {"load": {"paths": {}}}}']
)
def test_what_cannot_hold_the_change_is_refused(text):
    with pytest.raises(ConfigError):
        applied(FileEdit(JSON, CHANGES[2:3]), text.encode())


TOMLS = [
    "",
    'model = "x"',
    '# mine\nmodel = "x"\n\n[projects."/a"]\ntrust_level = "trusted" # yes\n',
    '[mcp_servers.other]\ncommand = "y"\n# end\n',
    "[[things]]\nx = 1\n[mcp_servers]\n",
    "note = '''\n[mcp_servers.memory]\n'''\n",
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("theirs", ["", '\n[projects."/b"]\ntrust_level = "trusted"\n', "# a comment\n"])
@pytest.mark.parametrize("text", TOMLS)
def test_a_table_comes_and_goes(text, theirs, newline):
    before, added = (part.replace("\n", newline).encode() for part in (text, theirs))
    after, made = applied(FileEdit(TOML, (TABLE,)), before)
    assert tomllib.loads(after.decode())["mcp_servers"]["memory"] == SERVER
    assert b"\r\n" not in before or b"\n" not in after.replace(b"\r\n", b"")
    assert after.startswith(before)
    end = "" if text.endswith("\n") or not text else "\n"
    assert reverted(FileEdit(TOML, made), after + added) == before + end.encode() + added


@pytest.mark.parametrize(
    "text",
    [
        *('mcp_servers = { memory = { command = "x" } }', '[mcp_servers]\nmemory.command = "x"', "mcp_servers = 3"),
        '[mcp_servers.memory]\ncommand = "old"\n',
    ],
)
def test_a_table_in_another_form_is_refused(text):
    with pytest.raises(ConfigError):
        applied(FileEdit(TOML, (TABLE,)), text.encode())


def test_a_table_that_an_earlier_version_replaced_comes_back():
    old = '[mcp_servers.memory]\ncommand = "old"\n'
    [after, (made,)] = applied(FileEdit(TOML, (TABLE,)), b"a = 1\n")
    change = HostChange("table", made.keys, made.value, old)
    assert reverted(FileEdit(TOML, (change,)), after) == b"a = 1\n\n" + old.encode()


def test_an_edited_table_is_named():
    after, made = applied(FileEdit(TOML, (TABLE,)), b"")
    with pytest.raises(ConfigError, match=r"\[mcp_servers\.memory\] of config\.toml was edited"):
        reverted(FileEdit(TOML, made), after.replace(b"true", b"false"))
