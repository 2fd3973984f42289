"""`auto` finds the release that is in use, and says why; and keys that 2026.9 took away are named."""

import json

import pytest

from memory_tui.config import config_file, openclaw_release
from memory_tui.config.settings import NEWEST_OPENCLAW, OLDER_OPENCLAW, RETIRED
from memory_tui.plan import Options, choose, plan
from tests.support.config_text import parsed
from tests.support.workspace import put


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def install(tmp_path, manifest):
    """Put a program `openclaw` on the search path as npm does: a link into a package."""
    package = tmp_path / "lib" / "node_modules" / "openclaw"
    package.mkdir(parents=True)
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (package / "package.json").write_text(text)
    program = package / "openclaw.mjs"
    program.write_text("#!/usr/bin/env node\n")
    program.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "openclaw").symlink_to(program)


def found(home):
    return openclaw_release.release_meant("auto", config_file.load(None, home / ".openclaw" / "workspace"))


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("2027.1.3", "openclaw-2026.9"),
        ("2026.7.9", "openclaw-2026.3"),
        ("2026.3.7", "openclaw-2026.3"),
        ("2026.3.6", "openclaw-2026.2"),
        ("2026.10", "openclaw-2026.9"),
        ("latest", ""),
    ],
)
def test_a_version_has_its_nearest_profile(version, profile):
    assert openclaw_release.profile_of(version) == profile


@pytest.mark.parametrize("manifest", ["not JSON", "[]", {"name": "other", "version": "1"}, {"name": "openclaw"}])
def test_a_program_that_does_not_say_its_version_decides_nothing(home, write, tmp_path, manifest):
    write({"memory": {"search": {}}})
    install(tmp_path, manifest)
    assert found(home).reason == "the configuration has memory.search, as from 2026.8 on"


@pytest.mark.parametrize(
    ("config", "files", "profile", "said"),
    [
        ({"memory": {"search": {}}}, [], NEWEST_OPENCLAW, "memory.search"),
        ({"agents": {"defaults": {"memorySearch": {}}}}, [], OLDER_OPENCLAW, "agents.defaults.memorySearch"),
        ({"agents": {"defaults": {}}}, ["memory/main.sqlite"], OLDER_OPENCLAW, "index of its own"),
        ({"agents": {"defaults": {}}}, [], NEWEST_OPENCLAW, "nothing shows an older release"),
        ({"meta": {"lastTouchedVersion": "2026.3.13"}}, [], OLDER_OPENCLAW, "2026.3.13 wrote the configuration"),
        ({"meta": {"lastTouchedVersion": "2026.9.6"}}, ["memory/main.sqlite"], NEWEST_OPENCLAW, "2026.9.6 wrote"),
        ({"meta": {"lastTouchedVersion": "2026.3.13"}, "memory": {"search": {}}}, [], NEWEST_OPENCLAW, "memory.search"),
        ({"meta": {"lastTouchedVersion": "soon"}}, [], NEWEST_OPENCLAW, "nothing shows an older release"),
        (
            {"agents": {"defaults": {"memorySearch": {}}}},
            ["memory/main.sqlite", "agents/main/agent/openclaw-agent.sqlite"],
            NEWEST_OPENCLAW,
            "database of 2026.8",
        ),
    ],
)
def test_without_a_program_the_files_tell(home, write, config, files, profile, said):
    write(config)
    for name in files:
        path = home / ".openclaw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    value = choose(Options()).settings.values["profile"]
    assert (value.value, said in value.origin, value.origin[-13:]) == (profile, True, "openclaw.json")


def test_openclaws_index_is_the_agents_database_from_2026_8_on(home, write):
    write({"memory": {"search": {}}})
    own, database = home / ".openclaw/memory/main.sqlite", home / ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    assert choose(Options()).openclaw_index == database
    own.parent.mkdir()
    own.touch()
    assert choose(Options()).openclaw_index == own
    database.parent.mkdir(parents=True)
    database.touch()
    assert choose(Options()).openclaw_index == database


def test_projects_are_compared_as_openclaw_writes_them(home):
    put(home / "notes", "MEMORY.md")
    asked = Options(workspace=str(home / "notes"), projects=(" GitHub.com/Me/Site ", "path:/Home/Me"))
    assert plan(asked).projects == {"github.com/Me/Site", "path:/Home/Me"}


@pytest.mark.parametrize("key", sorted(RETIRED))
def test_a_retired_key_in_the_new_section_is_named_once_with_its_line(key):
    leaf: object = {"tokens": 7} if key == "chunking" else 7
    for part in reversed(key.split(".")):
        leaf = {part: leaf}
    text = json.dumps({"memory": {"search": leaf}})
    said = [found for found in parsed(text).problems if "retired" in found.message]
    assert len(said) == 1
    assert said[0].key.startswith(f"memory.search.{key}")
    assert "openclaw doctor --fix" in said[0].used


def test_the_command_names_what_2026_9_took_away(write, printed):
    path = write("{agents: {defaults: {\n memorySearch: {chunking: {tokens: 300}}}}}")
    before = path.read_bytes()
    assert "Retired in 2026.9: chunks are 400 tokens with 80 repeated." in printed("config")
    found = json.loads(printed("config", "--json"))
    assert next(row for row in found["values"] if row["key"] == "store.path")["retired"]
    assert path.read_bytes() == before
