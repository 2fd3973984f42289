"""`provider --add` tests a provider, shows the difference, asks, writes it and takes it back."""

import pytest

from memory_tui.config.places import own_path
from tests.support.provider_server import Play, serving, status
from tests.support.workspace import put_all

KEY = "sk-add-0123456789"
THEIRS = """{
  // kept
  agents: { defaults: { memorySearch: { provider: "builtin", query: { minScore: 0.2 } } } },
}
"""


@pytest.fixture
def play(monkeypatch):
    monkeypatch.setenv("EMBED_KEY", KEY)
    with serving(Play()) as server:
        yield server


@pytest.fixture
def run(tmp_path, command):
    notes = put_all(tmp_path / "notes", {"MEMORY.md": "# Facts\n- The walrus likes cake.\n"})

    def go(*words):
        code, out, err = command(*words, "--workspace", str(notes), "--index", str(tmp_path / "i.sqlite"))
        assert KEY not in out + err
        return code, out + err

    return go


def test_a_kind_that_is_none_is_refused_with_those_that_are(run):
    code, printed = run("provider", "--add", "foo")
    assert (code, printed.count("openai-compatible"), "scripted" in printed) == (2, 1, False)


def added(play, *more):
    server = ["--address", f"{play.url}/v1", "--key-variable", "EMBED_KEY", "--model", "small"]
    return ["provider", "--add", "openai-compatible", *server, *more]


@pytest.mark.parametrize("theirs", [False, True])
def test_a_provider_is_tested_shown_written_used_and_taken_back(play, run, tmp_path, theirs):
    path = own_path()
    if theirs:
        path = tmp_path / "openclaw.json"
        path.write_text(THEIRS)
    where = ["--config", str(path)] if theirs else []
    code, said = run(*added(play), *where)
    assert (code, path.exists(), "Use --yes" in said, "256 dimensions" in said) == (2, theirs, True, True)
    code, said = run(*added(play, "--yes"), *where)
    assert (code, "+" in said, "config --undo" in said) == (0, True, True)
    section = ["agents", "defaults", "memorySearch"] if theirs else []
    assert {asked.headers["Authorization"] for asked in play.asked} == {f"Bearer {KEY}"}
    assert "walrus" not in "".join(text for asked in play.asked for text in asked.texts)
    if theirs:
        left = path.read_text().split("\n")
        assert [line for line in THEIRS.split("\n") if line not in left] == [THEIRS.split("\n")[2]]
    assert '"${EMBED_KEY}"' in path.read_text()
    assert f"{'.'.join([*section, 'provider'])}" in run("config", *where)[1]
    assert run("index", *where)[0] == 0
    assert play.asked[-1].body["model"] == "small"
    assert run("config", "--undo", *where)[0] == 0
    assert path.read_text() == THEIRS if theirs else not path.exists()


def test_nothing_is_written_where_the_test_fails_or_a_key_would_go_to_another_host(play, run, tmp_path, monkeypatch):
    play.usual = status(401, {"error": {"message": "Incorrect API key"}})
    code, said = run(*added(play, "--yes"))
    assert (code, "Incorrect API key" in said, own_path().exists()) == (1, True, False)
    monkeypatch.delenv("EMBED_KEY")
    assert "The variable EMBED_KEY is not set" in run(*added(play, "--yes"))[1]
    asked, path = len(play.asked), tmp_path / "openclaw.json"
    path.write_text(THEIRS.replace('"builtin",', f'"openai", remote: {{apiKey: "{KEY}"}},'))
    code, said = run("provider", "--add", "ollama", "--address", play.url, "--yes", "--config", str(path))
    assert (code, "would get that" in said, len(play.asked)) == (2, True, asked)
    assert "--add" in run("search", "x", "--set", f"remote.baseUrl={play.url}")[1]
    assert "openai-compatible --address" in run("provider", "--add")[1]
