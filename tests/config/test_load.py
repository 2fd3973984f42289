"""What a configuration says: both layouts, layers, secrets, and a sentence with the line for what cannot be used."""

import json
from pathlib import Path

import pytest

from memory_tui.config import config_file
from memory_tui.config.settings import BY_PATH, OF_AGENT
from memory_tui.errors import ConfigError
from tests.support.config_text import parsed


def older(section):
    """The configuration with `section` as the members of agents.defaults.memorySearch."""
    return parsed(f"{{agents: {{defaults: {{memorySearch: {{{section}}}}}}}}}")


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (
            '{agents: {defaults: {workspace: "~/w", memorySearch: {provider: "openai", extraPaths: ["a", "a", " "],'
            " query: {minScore: .2, hybrid: {mmr: {enabled: true}}}}}}}",
            "agents.defaults.memorySearch",
        ),
        (
            '{memory: {search: {provider: "openai", extraPaths: ["a"],'
            ' query: {minScore: .2, maxResults: 9}}}, agents: {defaults: {workspace: "~/w"}}}',
            "memory.search",
        ),
    ],
)
def test_both_layouts_of_openclaw_are_read(text, layout):
    found = parsed(text)
    assert (found.kind, found.layout) == ("openclaw", layout)
    assert found.values["query.minScore"].value == 0.2
    assert found.values["query.minScore"].origin == f"openclaw.json:1 {layout}.query.minScore"
    assert (found.provider, found.extra_paths, found.agent.named) == ("openai", ("a",), "~/w")
    assert found.problems == ()


def test_our_own_file_has_the_tree_at_the_top():
    text = '{query: {minScore: 0.1}, sync: {watchDebounceMs: 200}, profile: "recommended", workspace: "/notes"}'
    found = parsed(text, name="config.json")
    assert found.kind == "own"
    assert found.values["sync.watchDebounceMs"].value == 200
    assert found.values["profile"].value == "recommended"
    assert (found.agent.named, found.agent.workspace) == ("/notes", Path("/notes"))
    assert found.problems == ()


def test_an_agent_overrides_field_by_field_and_adds_its_extra_paths():
    text = """{agents: {defaults: {memorySearch: {query: {minScore: 0.2, maxResults: 9}, extraPaths: ["a", "b"],
                                                  cache: {enabled: false}}},
      list: [{id: "main"},
             {id: "Coder", memorySearch: {query: {minScore: 0.5}, extraPaths: ["b", "c"], remote: {apiKey: "k"}}}]}}"""
    main, coder = parsed(text), parsed(text, "coder")
    assert (main.value("query.minScore"), coder.value("query.minScore")) == (0.2, 0.5)
    assert (coder.value("query.maxResults"), coder.value("cache.enabled")) == (9, False)
    assert (main.extra_paths, coder.extra_paths) == (("a", "b"), ("a", "b", "c"))
    assert [place.line for place in coder.entries["extraPaths"].places] == [1, 4]
    assert coder.values["query.minScore"].origin == "openclaw.json:4 agents.list[1].memorySearch.query.minScore"
    assert coder.secret("remote.apiKey")
    assert main.secret("remote.apiKey") is None


@pytest.mark.parametrize("key", OF_AGENT)
def test_what_an_agent_has_of_its_own_counts_before_what_is_general(key):
    row = BY_PATH[f"agents.defaults.{key}"]
    value: object = row.choices[1] if row.choices else 77
    for name in reversed(key.split(".")):
        value = {name: value}
    tree = {"agents": {"entries": {"main": value}}, "memory": {"search": {}}}
    found = parsed(json.dumps(tree))
    assert found.value(row.path) == (row.choices[1] if row.choices else 77)
    assert found.entries[row.path].places[0].path == f"agents.entries.main.{key}"


def test_two_layouts_at_once_are_reported_and_the_newer_counts():
    newer, older = "{search: {query: {minScore: 0.1}}}", "{memorySearch: {query: {minScore: 0.9}}}"
    found = parsed(f"{{memory: {newer},\n agents: {{defaults: {older}}}}}")
    assert found.value("query.minScore") == 0.1
    assert "line 2" in str(found.problems[0])


# What is written, whose fault it is, and what counts instead.
BAD = [
    ("query: {minScore: 2}", "query.minScore", 0.35),
    ("query: {minScore: NaN}", "query.minScore", 0.35),
    ("query: {minScore: '0.2'}", "query.minScore", 0.35),
    ("query: {minScore: {a: 1}}", "query.minScore", 0.35),
    ("query: {maxResults: 2.5}", "query.maxResults", 6),
    ("sync: {watch: 'yes'}", "sync.watch", True),
    ("cache: {maxEntries: 0}", "cache.maxEntries", 50_000),
    ("sources: ['memory', 'mails']", "sources", ("memory",)),
    ("sources: 'memory'", "sources", ("memory",)),
    ("extraPaths: ['a', 3]", "extraPaths", ()),
    ("model: 7", "model", None),
    ("remote: {apiKey: 7}", "remote.apiKey", None),
    ("remote: {headers: {a: 7}}", "remote.headers", None),
    ("store: {fts: {tokenizer: 'porter'}}", "store.fts.tokenizer", "unicode61"),
    ("store: {path: '${NOT_SET_ANYWHERE}/x'}", "store.path", None),
]


@pytest.mark.parametrize(("section", "key", "used"), BAD, ids=[f"{section}" for section, _, _ in BAD])
def test_a_bad_value_is_reported_with_its_line_and_the_default_used(section, key, used):
    found = older(f"\n\n{section}")
    assert found.value(key) == used
    assert key not in found.values
    assert len(found.problems) == 1
    problem = found.problems[0]
    assert (problem.key, problem.place.line) == (f"agents.defaults.memorySearch.{key}", 3)
    assert "used" in problem.used
    assert used in (None, ()) or str(used) in problem.used
    assert all(part in str(found.problems[0]) for part in (key, "openclaw.json line 3"))


@pytest.mark.parametrize(
    "text",
    [
        "{agents: {defaults: {memorySearch: 3}}}",
        "{agents: {defaults: {memorySearch: {query: [1]}}}}",
        "{agents: {defaults: {memorySearch: {sync: {sessions: 1}}}}}",
        "{memory: {search: 'x'}}",
        "{memory: 1}",
        "{agents: {list: {}}}",
        "{agents: {entries: []}}",
        "{agents: {list: [3]}}",
        "{agents: {list: [{}]}}",
        "{agents: {defaults: {workspace: 7}}}",
        "{agents: {list: [{id: 7}]}}",
    ],
)
def test_a_section_of_the_wrong_kind_is_reported_and_harmless(text):
    found = parsed(text)
    assert len(found.problems) == 1
    assert "line 1" in str(found.problems[0])
    assert found.values == {}


def test_unknown_keys_are_reported_with_a_suggestion_and_change_nothing():
    found = older("\nquery: {minscore: 0.1,\n maxResults: 3}, nonsense: {a: {b: 1}}, profile: 'recommended'")
    assert [problem.place.line for problem in found.problems] == [2, 3, 3]
    assert "did you mean query.minScore?" in str(found.problems[0])
    assert "nonsense is not a documented setting" in str(found.problems[1])
    assert "memory-tui" in str(found.problems[2])
    assert found.values.keys() == {"query.maxResults"}


def test_what_else_is_in_the_file_is_none_of_our_business():
    found = parsed(
        "{channels: {telegram: {botToken: 'x'}}, agents: {defaults: {model: {primary: 'm'},"
        " compaction: {mode: 'safeguard', memoryFlush: {softThresholdTokens: 4000, foo: 1}}},"
        " list: [{id: 'main', tools: {}}]}, memory: {citations: 'on', search: {}, bar: 1},"
        " plugins: {slots: {memory: 'memory-core'}, entries: {x: {}}}}",
    )
    assert [problem.key for problem in found.problems] == ["agents.defaults.compaction.memoryFlush.foo", "memory.bar"]
    assert found.value("memory.citations") == "on"


def test_what_must_be_known_to_trust_an_answer_is_said():
    assert "disabled" in str(older("enabled: false").problems[0])
    assert "Both weights are 0" in str(older("query: {hybrid: {vectorWeight: 0, textWeight: 0}}").problems[0])
    assert "99 is used" in str(older("chunking: {tokens: 100, overlap: 100}").problems[0])
    assert "opena" not in older("provider: 'openai'").problems
    assert "words alone" in str(older("provider: 'opena'").problems[0])
    assert "line 1" in str(older("fallback: 'opena'").problems[0])
    assert not older("extraPaths: [{path: 'a', pattern: '**/x.md'}, {path: 'b'}]").problems
    assert "list of paths" in str(older("extraPaths: [{path: 'a', pattern: 1}]").problems[0])
    assert not parsed("{memory: {backend: 'qmd'}}").problems
    zone = parsed("{agents: {defaults: {userTimezone: 'Mars/Olympus'}}}")
    assert "is a time zone such as Europe/Berlin" in str(zone.problems[0])
    assert zone.time_zone is None
    assert "search, vsearch, query" in str(parsed("{memory: {qmd: {searchMode: 'x'}}}").problems[0])


@pytest.mark.parametrize(
    ("size", "bytes_"), [("2097152", 2_097_152), ("'2mb'", 2_097_152), ("'1.5 KB'", 1536), ("0", 0)]
)
def test_sizes_are_numbers_or_have_a_unit(size, bytes_):
    flush = f"{{forceFlushTranscriptBytes: {size}}}"
    found = parsed(f"{{agents: {{defaults: {{compaction: {{memoryFlush: {flush}}}}}}}}}")
    assert found.value("agents.defaults.compaction.memoryFlush.forceFlushTranscriptBytes") == bytes_


def test_a_text_that_holds_no_object_is_refused():
    with pytest.raises(ConfigError) as caught:
        parsed("[1, 2]")
    assert (caught.value.line, caught.value.column) == (1, 1)


KEY = "sk-very-secret-0123456789"


@pytest.fixture
def secret(write, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    def go(api_key, secrets=None):
        write({"agents": {"defaults": {"memorySearch": {"remote": {"apiKey": api_key}}}}, "secrets": secrets or {}})
        found = config_file.load(None, None).secret("remote.apiKey")
        assert found is not None
        assert KEY not in repr(found) + str(found)
        return found

    return go


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        "${MY_KEY}",
        " ${MY_KEY} ",
        "$MY_KEY",
        "secretref-env:MY_KEY",
        {"source": "env", "id": "MY_KEY"},
        {"source": "env", "provider": "default", "id": "MY_KEY"},
    ],
)
def test_text_and_variables(secret, written):
    found = secret(written)
    assert (found.value, found.problem) == (KEY, "")
    assert "set, from" in str(found)


@pytest.mark.parametrize(
    ("written", "secrets", "why"),
    [
        ("${NOT_SET_AT_ALL}", {}, "NOT_SET_AT_ALL is not set"),
        ("$NOT_SET_AT_ALL", {}, "NOT_SET_AT_ALL is not set"),
        ("", {}, "empty"),
        ({"source": "env"}, {}, "reference"),
        ({}, {}, "reference"),
        (
            {"source": "env", "provider": "strict", "id": "MY_KEY"},
            {"providers": {"strict": {"source": "env", "allowlist": ["OTHER"]}}},
            "allowlist",
        ),
        ({"source": "file", "provider": "mine", "id": "/a"}, {}, "of source 'file', which memory-tui never asks"),
    ],
)
def test_why_there_is_none(secret, written, secrets, why):
    found = secret(written, secrets)
    assert found.value == ""
    assert why in str(found)


def test_a_command_is_never_run(secret, tmp_path):
    trace, command = tmp_path / "it ran", tmp_path / "vault"
    command.write_text(f"#!/bin/sh\ntouch '{trace}'\necho {KEY}\n")
    command.chmod(0o755)
    command = {"providers": {"vault": {"source": "exec", "command": str(command)}}}
    found = secret({"source": "exec", "provider": "vault", "id": "openai"}, command)
    assert not found.value
    assert "of source 'exec', which memory-tui never asks" in found.problem
    assert not trace.exists()


def test_headers_are_secrets_too(write, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    write({"agents": {"defaults": {"memorySearch": {"remote": {"headers": {"x-a": KEY, "x-b": "Bearer ${MY_KEY}"}}}}}})
    found = config_file.load(None, None)
    assert {name: value.value for name, value in found.headers()} == {"x-a": KEY, "x-b": f"Bearer {KEY}"}
    assert KEY not in repr(found)
    assert KEY not in repr(found.entries)
