"""JSON5 as it is read, and tuned values that go into it: no comment changes, no byte outside the values."""

import json
import stat
from pathlib import Path

import pyjson5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui import plan
from memory_tui.config import config_patch, json5
from memory_tui.config import places as configuration
from memory_tui.config.config_patch import patch
from memory_tui.config.json5 import SourceText, parse_json5
from memory_tui.errors import ConfigError
from memory_tui.plan import Options

COMMENTED = """// my agents
{
  agents: {
    defaults: {
      workspace: "WORKSPACE", // notes
      memorySearch: {
        provider: "none",
        query: {
          minScore: 0.35, // what a hit has to score
          /* the two sides */
          hybrid: { vectorWeight: 0.7, textWeight: 0.3 },
        },
        remote: { apiKey: "sk-1234567890abcdefghij" }
      }, // end of search
    },
  },
}
"""


def plan_of(path, *changes, profile="openclaw-2026.3", agent=None):
    choices = plan.choose(Options(config=str(path), agent=agent, changes=(("profile", profile), *changes)))
    return patch(choices.config, choices.settings, choices.as_written())


def text_of(found):
    [file] = found.files
    return file.then.decode()


@pytest.fixture
def commented(write, tmp_path):
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    return write(COMMENTED.replace("WORKSPACE", str(notes)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{ "b": {"c": 1} }'),
        ("{}\n", '{\n  "b": {\n    "c": 1\n  }\n}\n'),
        ("{a: 1}", "{a: 1, b: {c: 1}}"),
        ("{a: 1,}", "{a: 1, b: {c: 1},}"),
        ("{\r\n\ta: 1,\r\n}\r\n", "{\r\n\ta: 1,\r\n\tb: {\r\n\t\tc: 1\r\n\t},\r\n}\r\n"),
        ("{\n  // nothing yet\n}\n", '{\n  "b": {\n    "c": 1\n  },\n  // nothing yet\n}\n'),
        ("{\n  a: 1 /* x */ , // y\n}", "{\n  a: 1 /* x */ , // y\n  b: {\n    c: 1\n  },\n}"),
    ],
)
def test_new_members_look_like_the_others(text, expected):
    node = parse_json5(SourceText(Path("x"), text))
    after = json5.spliced(text, json5.insert(node, {"b": {"c": 1}}))
    assert after == expected
    assert parse_json5(SourceText(Path("x"), after)).get("b", "c").plain() == 1


SPACES = st.sampled_from(["", " ", "\n", "\r\n", "\t", " // c, }\n", "/* { */", "\n  "])
KEYS = st.sampled_from(["a", "b", "query", "minScore", "'x y'", '"z"'])
SCALARS = st.sampled_from(["1", "-.5", "0x1F", "'t,'", '"}"', "true", "null", "[1, 2,]"])


@st.composite
def objects(draw, depth=2):
    members = []
    for _ in range(draw(st.integers(0, 3))):
        value = draw(objects(depth - 1)) if depth and draw(st.booleans()) else draw(SCALARS)
        members.append(f"{draw(SPACES)}{draw(KEYS)}{draw(SPACES)}:{draw(SPACES)}{value}{draw(SPACES)}")
    comma = "," + draw(SPACES) if members and draw(st.booleans()) else ""
    return "{" + draw(SPACES) + ",".join(members) + comma + "}"


@given(
    objects(),
    st.dictionaries(st.sampled_from(["new", "other key"]), st.sampled_from([1, 0.5, True, {"deep": 2}]), min_size=1),
)
def test_inserting_adds_members_and_removes_no_byte(text, members):
    node = parse_json5(SourceText(Path("x"), text))
    splices = json5.insert(node, members)
    after = json5.spliced(text, splices)
    assert parse_json5(SourceText(Path("x"), after)).plain() == {**node.plain(), **members}
    at = 0
    for splice in sorted(splices, key=lambda splice: splice.start):
        assert text[splice.start : splice.end].strip() == ""
        assert text[at : splice.start] in after
        at = splice.end
    assert text[at:] in after


@given(objects(), st.sampled_from([0.25, 7, True, "word"]))
def test_replacing_changes_no_byte_outside_the_value(text, value):
    node = parse_json5(SourceText(Path("x"), text))
    for key, child in node.children():
        after = json5.spliced(text, [json5.replace(child, value)])
        assert after.startswith(text[: child.start])
        assert after.endswith(text[child.end :])
        assert parse_json5(SourceText(Path("x"), after)).plain() == {**node.plain(), key: value}


def test_an_agents_own_section_is_the_place_of_its_values(write, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "memory").mkdir(parents=True)
    one = {"id": "one", "default": True, "workspace": str(tmp_path / "one")}
    two = {"id": "two", "workspace": str(tmp_path / "two"), "memorySearch": {"sources": ["memory"]}}
    path = write({"agents": {"defaults": {"memorySearch": {"query": {"minScore": 0.4}}}, "list": [one, two]}})
    after = json.loads(text_of(plan_of(path, ("query.minScore", "0.1"), agent="two")))
    assert after["agents"]["list"][1]["memorySearch"] == {"sources": ["memory"], "query": {"minScore": 0.1}}
    assert after["agents"]["defaults"]["memorySearch"] == {"query": {"minScore": 0.4}}
    found = plan_of(path, ("query.minScore", "0.1"), agent="one")
    assert json.loads(text_of(found))["agents"]["defaults"]["memorySearch"] == {"query": {"minScore": 0.1}}
    assert any("every agent" in note for note in found.notes)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"memory": {"search": {"provider": "none"}}}, ("memory", "search")),
        ({"agents": {"defaults": {"memorySearch": {}}}}, ("agents", "defaults", "memorySearch")),
        ({"agents": {"defaults": {}}}, ("agents", "defaults", "memorySearch")),
        ({}, ("agents", "defaults", "memorySearch")),
    ],
)
def test_the_layout_that_is_there_is_kept(content, place, write):
    node = json.loads(text_of(plan_of(write(content), ("query.minScore", "0.1"))))
    for name in place:
        node = node[name]
    assert node["query"] == {"minScore": 0.1}


def test_a_difference_shows_no_key_and_no_header_of_a_provider(write):
    # But the last none has the form of a key, so that only their place tells what they are.
    path = write(
        """{
          memory: { search: {
            query: { minScore: 0.4 }, remote: { apiKey: "blue \\"whale", headers: { "X-Gate": "seal" } },
          } },
          models: { providers: {
            openai: { apiKey: 'grey gull', headers: { "X-House": "marten" } }, anthropic: { apiKey: 'sk-ant-lynx-0' },
          } },
        }"""
    )
    difference = plan_of(path, ("query.minScore", "0.1")).diff()
    assert "minScore: 0.1" in difference
    assert [word for word in ("whale", "seal", "gull", "marten", "lynx") if word in difference] == []


def test_what_was_written_is_what_holds_next_time(commented):
    decay = "query.hybrid.temporalDecay"
    wanted = {"query.hybrid.textWeight": "0.4", f"{decay}.enabled": "on", f"{decay}.halfLifeDays": "90"}
    plan_of(commented, *wanted.items()).write()
    again = plan_of(commented, *wanted.items())
    assert (again.changes, again.files) == ((), ())


def test_values_of_our_own_rules_go_into_our_own_file_and_hold_there(commented):
    before = commented.read_bytes()
    found = plan_of(commented, ("recency.weight", "0.1"), profile="recommended")
    assert found.target == configuration.own_path()
    assert any("OpenClaw" in note for note in found.notes)
    found.write()
    assert commented.read_bytes() == before
    ours = plan.choose(Options(config=str(commented), changes=(("profile", "recommended"),)))
    assert ours.settings.number("recency.weight") == 0.1
    assert plan.choose(Options(config=str(commented))).settings.number("recency.weight") == 0.02


@pytest.mark.parametrize(
    ("content", "profile", "after"),
    [
        ("{}", "openclaw-2026.3", {"profile": "openclaw-2026.3", "query": {"minScore": 0.2}}),
        ('{"profile": "openclaw-2026.2"}', "recommended", {"profile": "recommended", "query": {"minScore": 0.2}}),
        ('{"profile": "auto"}', "recommended", {"profile": "auto", "query": {"minScore": 0.2}}),
    ],
)
def test_values_go_into_our_own_file_with_the_profile_that_they_were_tuned_under(content, profile, after, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(content)
    plan_of(file, ("query.minScore", "0.2"), profile=profile).write()
    assert json.loads(file.read_text()) == after
    holds = plan.choose(Options(config=str(file))).settings
    assert (holds.word("profile"), holds.number("query.minScore")) == (profile, 0.2)
    assert plan_of(file, ("query.minScore", "0.2"), profile=profile).changes == ()


def test_a_profile_has_no_place_in_openclaws_file_and_the_way_to_it_is_said(commented):
    found = plan_of(commented, ("query.minScore", "0.3"), profile="openclaw-2026.2")
    assert [change.key for change in found.changes] == ["query.minScore"]
    assert [(key, "--profile" in reason) for key, reason in found.left] == [("profile", True)]
    assert plan_of(commented, ("query.minScore", "0.3")).left == ()
    assert any("--profile recommended" in note for note in plan_of(commented, profile="recommended").notes)


def test_included_files_are_patched_where_the_value_is(write):
    path = write('{ agents: { defaults: { memorySearch: { $include: "./search.json5" } } } }')
    included = path.parent / "search.json5"
    included.write_text("{ query: { minScore: 0.4 } } // mine\n")
    [file] = plan_of(path, ("query.minScore", "0.3")).files
    assert (file.path, file.then.decode()) == (included, "{ query: { minScore: 0.3 } } // mine\n")


def test_a_file_that_changed_meanwhile_is_left_alone(commented):
    found = plan_of(commented, ("query.minScore", "0.2"))
    commented.write_text(commented.read_text() + "// somebody was here\n")
    with pytest.raises(ConfigError, match="changed"):
        found.write()
    assert commented.read_text().endswith("// somebody was here\n")


def test_undo_brings_back_every_byte_unless_the_file_changed_since(commented):
    before, mode = commented.read_bytes(), 0o640
    commented.chmod(mode)
    plan_of(commented, ("query.minScore", "0.2")).write()
    done = config_patch.last()
    assert Path(done.backup).read_bytes() == before
    assert stat.S_IMODE(Path(done.backup).stat().st_mode) == 0o600
    config_patch.undo(done)
    assert (commented.read_bytes(), stat.S_IMODE(commented.stat().st_mode)) == (before, mode)
    assert config_patch.last() is None
    plan_of(commented, ("query.minScore", "0.2")).write()
    kept = Path(config_patch.last().backup).read_bytes()
    Path(config_patch.last().backup).unlink()
    with pytest.raises(ConfigError, match=r"gone or was changed; nothing was undone"):
        config_patch.undo(config_patch.last())
    Path(config_patch.last().backup).write_bytes(kept)
    commented.write_text(commented.read_text() + " ")
    with pytest.raises(ConfigError, match="nothing was undone"):
        config_patch.undo(config_patch.last())


def test_the_command_shows_asks_writes_and_takes_back(commented, printed):
    before = commented.read_bytes()
    place = ["config", "--write", "--config", str(commented), "--set", "query.minScore=0.2"]
    out = printed(*place, "--dry-run")
    assert "minScore .35 -> .20" in out
    assert "+          minScore: 0.2, // what a hit has to score" in out
    printed(*place, code=2)
    assert commented.read_bytes() == before, "nobody was there to say yes"
    data = json.loads(printed(*place, "--yes", "--json"))
    assert (data["written"], commented.read_bytes()) == (True, before.replace(b"0.35", b"0.2"))
    printed("config", "--undo")
    assert commented.read_bytes() == before
    printed("config", "--undo", code=2)


PATH = Path("openclaw.json")

VALID = [
    "{$a_1: .5, 'b': +1e3, \"c\": -0x1F, d: [1,], e: 5., f: -Infinity, g: '\\x41\\u0042\\\nC\\'', h: null, i: true}",
    "// first\n{/* a */ a /* b */ : /* c */ 1 /* d\n\n */, // e\n}",
    "{}",
    "[{},[],[{}]]",
    "'\\\\u12'",
    "'say \"so\"'",
    "'\\q\\/\\v'",
    "\ufeff{a:1}",
    "\t\f\u00a0 {\u2028}",
    "'\\\r\nx'",
    "{\\u0061b: 1, ünï: 2, 'with space': 3, \"\": 4}",
    "\v{a:1}",
    "{a:1,a:2}",
    '"\\ud83d\\ude00"',
]


def tree(text):
    return parse_json5(SourceText(PATH, text))


@pytest.mark.parametrize("text", VALID)
def test_the_tree_holds_what_the_reader_says(text):
    assert tree(text).plain() == pyjson5.decode(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_any_json_is_read_as_json(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert tree(text).plain() == json.loads(text)


@given(VALUES)
def test_every_value_knows_its_characters(value):
    text = f"// a comment\n{json.dumps(value, indent=2)} // and one more"

    def check(node):
        written = text[node.start : node.end]
        assert tree(written).plain() == node.plain()
        line, column = node.source.at(node.start)
        assert text.split("\n")[line - 1][column - 1 :].startswith(written.split("\n")[0])
        for child in node.value if isinstance(node.value, list) else [child for _, child in node.children()]:
            check(child)

    check(tree(text))


@given(st.text(alphabet="{}[]:,'\"\\/*\n ax1.+-eu0", max_size=40))
def test_any_text_is_read_or_refused_with_a_place(text):
    place = (1, 1)
    try:
        tree(text)
    except ConfigError as error:
        place = (error.line, error.column)
    assert (1, 1) <= place <= (text.count("\n") + 1, len(text) + 1)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,\n  b: [1,2\n  "c": 3}', 3, 3), ("", 1, 1), ("{\n a b}", 2, 4), ("{a:012}", 1, 5), ("[1,,2]", 1, 4),
        ("[1] // ok\n/* x", 2, 2), ("'abc", 1, 1), ('"a\\u12"', 1, 4), ("tru", 1, 1), ("{a:undefined}", 1, 4),
        ("[" * 300, 1, 201), ("{a:1;}", 1, 5), ("1" * 5000, 1, 1), ("-1e400", 1, 1), ('"\\ud83d x"', 1, 7),
    ],
)  # fmt: skip
def test_an_error_tells_where_it_is_near(text, line, column):
    with pytest.raises(ConfigError) as caught:
        tree(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"near line {line}, column {column}" in caught.value.message
