"""Which file applies, where OpenClaw's things are, who its agents are, and what its files are put together from."""

from pathlib import Path

import pytest

from memory_tui.config import config_file, places
from memory_tui.errors import ConfigError, SettingError


def test_the_state_folder_is_found_as_openclaw_finds_it(home, monkeypatch):
    assert places.state_folder() == home / ".openclaw"
    (home / ".moltbot").mkdir()
    assert places.state_folder() == home / ".moltbot"
    (home / ".clawdbot").mkdir()
    assert places.state_folder() == home / ".clawdbot"
    (home / ".openclaw").mkdir()
    assert places.state_folder() == home / ".openclaw"
    monkeypatch.setenv("OPENCLAW_PROFILE", "work")
    assert places.state_folder() == home / ".openclaw"
    (home / ".openclaw-work").mkdir()
    assert places.state_folder() == home / ".openclaw-work"
    monkeypatch.setenv("CLAWDBOT_STATE_DIR", "~/old")
    assert places.state_folder() == home / "old"
    monkeypatch.setenv("OPENCLAW_STATE_DIR", " /new ")
    assert places.state_folder() == Path("/new")


def test_the_configuration_is_found_as_openclaw_finds_it(home, monkeypatch):
    assert places.openclaw_path() == home / ".openclaw" / "openclaw.json"
    (home / ".openclaw").mkdir()
    (home / ".openclaw" / "clawdbot.json").write_text("{}")
    assert places.openclaw_path().name == "clawdbot.json"
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", "~/my.json")
    assert places.openclaw_path() == home / "my.json"


def test_the_usual_workspace_follows_profile_and_release(home, monkeypatch):
    usual = home / ".openclaw" / "workspace"
    assert places.default_workspace(newer=False) == usual
    monkeypatch.setenv("OPENCLAW_PROFILE", "work")
    assert places.default_workspace(newer=False) == home / ".openclaw" / "workspace-work"
    monkeypatch.setenv("OPENCLAW_PROFILE", "Default")
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(home / "state"))
    assert places.default_workspace(newer=False) == usual
    assert places.default_workspace(newer=True) == home / "state" / "workspace"
    usual.mkdir(parents=True)
    assert places.default_workspace(newer=True) == usual, "the one that is there"
    monkeypatch.setenv("OPENCLAW_WORKSPACE_DIR", "/mounted")
    assert places.default_workspace(newer=False) == Path("/mounted")


def test_the_configuration_of_another_workspace_does_not_apply(tmp_path, write):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    file = write({"agents": {"defaults": {"workspace": str(theirs)}}})
    assert config_file.load(None, theirs).kind == "openclaw"
    assert config_file.load(None, None).kind == "openclaw"
    assert config_file.load(None, tmp_path).kind == "none"
    assert config_file.load(str(file), tmp_path).kind == "openclaw"
    assert config_file.load(None, tmp_path, "main").kind == "openclaw", "an agent was asked for"


def test_our_own_file_applies_where_openclaws_does_not(home, write, tmp_path):
    write({"agents": {"defaults": {"workspace": "/elsewhere"}}})
    own = places.own_path()
    own.parent.mkdir(parents=True)
    own.write_text("{query: {minScore: 0.1}}")
    assert config_file.load(None, tmp_path).kind == "own"
    assert config_file.load(None, tmp_path).values["query.minScore"].value == 0.1
    del home


def test_a_workspace_tells_whose_it_is(tmp_path, write):
    coder = tmp_path / "coder"
    coder.mkdir()
    write({"agents": {"list": [{"id": "main"}, {"id": "coder", "workspace": str(coder)}]}})
    assert config_file.load(None, coder).agent.id == "coder"
    assert config_file.load(None, None).agent.id == "main"
    (tmp_path / "link").symlink_to(coder)
    assert config_file.load(None, tmp_path / "link").agent.id == "coder"


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        ({}, {"main": ("~/.openclaw/workspace", True)}),
        ({"defaults": {"workspace": "~/w"}}, {"main": ("~/w", True)}),
        (
            {"defaults": {"workspace": "~/w"}, "list": [{"id": "main"}, {"id": "coder"}]},
            {"main": ("~/w", True), "coder": ("~/.openclaw/workspace-coder", False)},
        ),
        (
            {"list": [{"id": "a", "workspace": "~/a"}, {"id": "b", "default": True}]},
            {"a": ("~/a", False), "b": ("~/.openclaw/workspace", True)},
        ),
        (
            {"list": [{"id": "first"}, {"id": "main"}]},
            {"first": ("~/.openclaw/workspace", True), "main": ("~/.openclaw/workspace-main", False)},
        ),
        ({"list": [{"id": "My Agent!"}]}, {"my-agent": ("~/.openclaw/workspace", True)}),
        ({"entries": {"solo": {}}, "defaults": {"workspace": "~/w"}}, {"solo": ("~/w", True)}),
        (
            {"entries": {"main": {"workspace": "~/m"}, "b": {}}, "defaults": {"workspace": "~/w"}},
            {"main": ("~/m", True), "b": ("~/w/b", False)},
        ),
        (
            {"entries": {"main": {"workspace": "~/m"}, "b": {}}},
            {"main": ("~/m", True), "b": ("~/.openclaw/workspace-b", False)},
        ),
    ],
)
def test_agents_and_their_workspaces(agents, expected, home, write):
    write({"agents": agents})
    found = config_file.load(None, None)
    assert expected == {
        agent.id: (str(agent.workspace).replace(str(home), "~"), agent.default) for agent in found.agents
    }
    assert found.problems == ()
    assert found.agent.default


def test_agents_that_are_there_twice_are_reported_with_line_and_choice(write):
    one, two = '{id: "main", default: true, workspace: "/a"}', '{id: "MAIN", workspace: "/b"}'
    write(f'{{agents: {{list: [\n{one},\n{two},\n{{id: "other", default: true}}]}}}}')
    found = config_file.load(None, None)
    assert [agent.id for agent in found.agents] == ["main", "other"]
    assert found.agent.workspace == Path("/a")
    said = [(problem.place.line, problem.used) for problem in found.problems]
    assert said == [(3, "only the one of line 2 is used"), (4, "'main' of line 2 is used")]


def test_an_agent_that_nobody_knows_is_refused_with_those_there_are(write, home):
    with pytest.raises(SettingError) as caught:
        config_file.load(None, None, "coder")
    assert "main" in caught.value.next_step
    assert config_file.load(None, None, "main").kind == "none"
    write({"agents": {"list": [{"id": "main"}, {"id": "researcher"}]}})
    with pytest.raises(SettingError) as caught:
        config_file.load(None, None, "coder")
    assert "main, researcher" in caught.value.next_step
    assert config_file.load(None, None, " Researcher ").agent.id == "researcher"
    del home


def test_variables_are_replaced_in_openclaws_order(home, write, monkeypatch):
    paths = ["${A}", "${B}/${C}", "${D}", "${E}", "$${A}", "${lower}", "$A", "${A", "~/x"]
    variables = {"vars": dict.fromkeys("ABCD", "env-vars"), "E": "env"}
    write({"env": variables, "agents": {"defaults": {"memorySearch": {"extraPaths": paths}}}})
    env = '# mine\nB=from-file # why\nexport C=\'quoted # text\'\nD="dou\\"ble"\nA=file\n=broken\nD2\n'
    (home / ".openclaw" / ".env").write_text(env)
    monkeypatch.setenv("A", "process")
    found = config_file.load(None, None)
    kept = ("${A}", "${lower}", "$A", "${A", "~/x")
    assert found.extra_paths == ("process", "from-file/quoted # text", 'dou"ble', "env", *kept)
    assert found.problems == ()


def test_a_variable_without_value_is_reported(write, monkeypatch):
    monkeypatch.setenv("EMPTY_ONE", "")
    write('{agents: {defaults: {\nworkspace: "${EMPTY_ONE}/x",\nmemorySearch: {extraPaths: ["${NOT_THERE}"]}}}}')
    found = config_file.load(None, None)
    assert [problem.place.line for problem in found.problems] == [2, 3]
    assert "EMPTY_ONE" in str(found.problems[0])
    assert found.extra_paths == ()


def test_includes_are_joined_as_openclaw_joins_them(write, home):
    folder = home / ".openclaw"
    write(
        '{$include: ["./base.json5", "more/agents.json5"],\n'
        " agents: {defaults: {memorySearch: {query: {minScore: 0.4}}}}}"
    )
    (folder / "more").mkdir()
    base = "{agents: {defaults: {memorySearch: {extraPaths: ['a'], query: {minScore: 0.1, maxResults: 3}}}}}"
    (folder / "base.json5").write_text(base)
    agents = "{agents: {defaults: {memorySearch: {$include: './search.json5', extraPaths: ['b']}}}}"
    (folder / "more" / "agents.json5").write_text(agents)
    (folder / "more" / "search.json5").write_text("\n{cache: {enabled: false}, query: {minScore: -1}}")
    found = config_file.load(None, None)
    assert (found.value("query.minScore"), found.value("query.maxResults")) == (0.4, 3)
    assert found.value("cache.enabled") is False
    assert found.extra_paths == ("a", "b")
    place = found.entries["cache.enabled"].places[0]
    assert (Path(place.file).name, place.line) == ("search.json5", 2)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("include", "why"),
    [
        ("../outside.json5", "outside the folder"), ("/etc/hostname", "outside the folder"),
        ("nothing.json5", "no such"), ("openclaw.json", "includes itself"), (7, "not the name"),
        ("loop.json5", "includes itself"), ("link.json5", "outside"), (".", "no such file"), ("a\0b", "not the name"),
    ],
)  # fmt: skip
def test_what_may_not_be_included_is_reported_and_the_rest_counts(include, why, write, home):
    write({"$include": include, "agents": {"defaults": {"memorySearch": {"query": {"minScore": 0.4}}}}})
    (home / "outside.json5").write_text("{}")
    (home / ".openclaw" / "loop.json5").write_text("{$include: 'loop.json5'}")
    (home / ".openclaw" / "link.json5").symlink_to(home / "outside.json5")
    found = config_file.load(None, None)
    assert found.value("query.minScore") == 0.4
    assert len(found.problems) == 1
    assert why in str(found.problems[0])


def test_what_is_no_configuration_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "huge.json").write_bytes(b" " * (config_file.MAX_BYTES + 1))
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00{")
    for name in ("huge.json", "folder.json", "bytes.json", "nothing.json"):
        with pytest.raises(ConfigError, match=name):
            config_file.load(str(tmp_path / name), None)
