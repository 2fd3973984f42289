"""The recall log: private, bounded, without secrets, safe among writers, and good enough to ask again."""

import json
import stat
import subprocess
import sys
import time
from functools import partial

import pytest
from msgspec.structs import replace

from memory_tui import recall_log
from memory_tui.cancel import Stop
from memory_tui.config.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.mcp.server import ServedMemory, ServerOptions
from memory_tui.mcp.wire import Caller
from memory_tui.openclaw import prompt
from memory_tui.openclaw.prompt import GET, SEARCH
from memory_tui.plan import Options
from memory_tui.recall_log import LoggedHit, RecallEntry
from tests.support.waiting import LONG
from tests.support.workspace import FACTS, needs_inodes, options_in, put_all, synced

SECRETS = ("sk-proj-abcdefghijklmnop1234", "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "hunter2hunter2")

NOBODY_EITHER = "An agent would get no hit now either: nothing holds these words. Below are the nearest."


def entry(query="router", **more):
    return RecallEntry(SEARCH, query, 1_795_000_000.5, **more)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "state" / "recalls" / "w.jsonl"


@pytest.fixture
def workspace(tmp_path):
    return put_all(tmp_path / "notes", FACTS)


def ask(host, tool=SEARCH, **args):
    return host.answer(tool, args, Caller("c", {}, Stop()))


def options(workspace, **more):
    return Options(workspace=str(workspace), index=str(workspace.parent / "i.sqlite"), provider="scripted", **more)


@pytest.fixture
def host(workspace):
    made = ServedMemory(lambda: Engine.open(options(workspace)), ServerOptions(log=True))
    yield made
    made.close()


@needs_inodes
def test_only_its_owner_may_read_it(log):
    recall_log.append_recall(log, entry())
    log.chmod(0o644)
    recall_log.append_recall(log, entry())
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_secrets_are_masked_wherever_they_stand(log):
    for secret in SECRETS:
        recall_log.append_recall(log, entry(f"why does password: {secret} not work", outcome=f"token={secret}"))
        recall_log.append_recall(log, entry("x" * (recall_log.MOST_QUERY - 8) + f" {secret}"))
    raw = log.read_text()
    assert not [secret for secret in SECRETS if secret in raw or secret[:14] in raw]
    assert "why does" in raw


def test_the_older_half_goes_when_it_grows_too_large(log, monkeypatch):
    monkeypatch.setattr(recall_log, "MOST_BYTES", 8000)
    for number in range(100):
        recall_log.append_recall(log, entry(f"question {number}"))
    entries = recall_log.read(log).entries
    assert log.stat().st_size <= 8000
    assert entries[-1].query == "question 99"
    assert [one.query for one in entries] == [f"question {n}" for n in range(100 - len(entries), 100)]
    assert sorted(path.suffix for path in log.parent.iterdir()) == [".jsonl", ".lock"]


def test_torn_and_foreign_lines_are_counted_and_cost_nothing(log):
    first = recall_log.append_recall(log, entry("one"))
    with log.open("ab") as file:
        file.write(
            b'[]\n{"tool": 5}\n\xff\xfe\nnull\n{"tool":"memory_search","query":"q","at":1,"hits":[3]}\n'
            b'{"tool": "memory_search", "query": "of another release", "at": 1, "new": {"x": 1}}\n'
            + b"[" * 100_000
            + b'\n{"tool": "memory_se'
        )
    second = recall_log.append_recall(log, entry("two"))
    found = recall_log.read(log)
    assert found.entries == (first, RecallEntry("memory_search", "of another release", 1), second)
    assert (found.unread, found.find("")) == (7, None)


WRITER = """
import sys
from pathlib import Path
from memory_tui import recall_log
from memory_tui.recall_log import RecallEntry as Entry
for number in range(30):
    recall_log.append_recall(Path(sys.argv[1]), Entry("memory_search", f"{sys.argv[2]} {number} " + "x" * 500, 1.0))
"""


def test_several_processes_write_whole_lines(log):
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(log), name]) for name in "abc"]
    assert [process.wait(4 * LONG) for process in running] == [0, 0, 0]
    found = recall_log.read(log)
    assert found.unread == 0
    asked = [one.query.split(" x")[0] for one in found.entries]
    assert sorted(asked) == sorted(f"{name} {number}" for name in "abc" for number in range(30))
    for name in "abc":
        assert [one for one in asked if one.startswith(name)] == [f"{name} {number}" for number in range(30)]


@pytest.mark.parametrize("setting", ["true", "false"])
def test_nothing_is_written_down_unless_the_setting_says_so(workspace, setting):
    quiet = ServedMemory(lambda: Engine.open(options(workspace, changes=(("recall.log", setting),))), ServerOptions())
    ask(quiet, query="omada")
    quiet.close()
    assert recall_log.recall_log_path(workspace).exists() == (setting == "true")


def test_a_recall_is_logged_with_its_knobs_and_hits_and_without_text(host, workspace):
    before = time.time()
    answer = host.answer(SEARCH, {"query": "omada router", "maxResults": 1}, Caller("client 1.2", {}, Stop()))
    place = recall_log.recall_log_path(workspace)
    logged = recall_log.read(place).entries[0]
    hit = answer["results"][0]
    assert (logged.query, logged.client, logged.mode) == ("omada router", "client 1.2", "hybrid")
    assert logged.settings["query.maxResults"] == 1
    assert logged.settings["profile"] == "recommended"
    chunk = logged.hits[0].chunk
    scores = hit["score"], hit["vectorScore"], hit["textScore"]
    lines = hit["startLine"], hit["endLine"]
    assert logged.hits == (LoggedHit("MEMORY.md", 1, 3, *scores, chunk, False, 1, *lines),)
    assert len(chunk) == 64
    assert logged.requested == {"query.maxResults": 1}
    assert (logged.ranked, logged.by_words) == (1, False)
    assert logged.now
    assert logged.index
    assert before <= logged.at <= time.time()
    assert "ER605" not in place.read_text()
    assert workspace not in place.parents


def test_failures_and_reads_are_logged_too(host, workspace):
    ask(host, query="omada", corpus="sessions")
    ask(host, GET, path="MEMORY.md")
    ask(host, GET, path="memory/none.md")
    first, second, third = recall_log.read(recall_log.recall_log_path(workspace)).entries
    assert "transcripts" in first.outcome
    assert (second.tool, second.query, second.outcome) == ("memory_get", "MEMORY.md", "lines 1 to 2")
    assert (second.delivered, second.first_line, second.last_line) == ({"MEMORY.md"}, 1, 2)
    assert (third.outcome, third.delivered) == ("There is no such note.", frozenset())


def test_a_log_that_cannot_be_written_costs_no_answer(host, workspace, capsys):
    recall_log.recall_log_path(workspace).mkdir(parents=True)
    assert ask(host, query="omada")["results"]
    assert "memory-tui: The recall log cannot be written: " in capsys.readouterr().err


NOTHING = "nothing holds these words"
HIT = LoggedHit("MEMORY.md", 1, 2, 0.5, 0.4, 0.3)


@pytest.mark.parametrize(
    ("logged", "reply"),
    [
        (entry(level="found", mode="hybrid", hits=(HIT,), ranked=1), "found"),
        (entry(level="nearby only", mode="hybrid", hits=(HIT,), ranked=1), "perhaps not answered"),
        (entry(level="found in part", mode="hybrid", hits=(HIT,), ranked=1), "found in part"),
        (entry(level=NOTHING, mode="hybrid", ranked=6), "not answered"),
        (entry(mode="hybrid", hits=(HIT,)), "no level"),
        (entry(mode="hybrid", outcome="Nothing matched."), "not answered"),
        (entry(mode="hybrid", ranked=6, outcome="This answer came too late."), "failed"),
        (entry(outcome="The index cannot be read."), "failed"),
        (entry(backend="qmd", hits=(HIT,), ranked=1), "no level"),
        (entry(backend="qmd", outcome="QMD found nothing."), "not answered"),
        (RecallEntry("memory_recall", "tea", 1.0, hits=(HIT,)), "no level"),
        (RecallEntry("memory_recall", "tea", 1.0, outcome=recall_log.NONE_NEAR), "not answered"),
        (RecallEntry("memory_recall", "tea", 1.0, outcome="No table."), "failed"),
        (RecallEntry("memory_get", "MEMORY.md", 1.0), ""),
    ],
)
def test_what_is_not_known_to_be_found_is_not_called_found(logged, reply):
    assert logged.reply == reply


def test_the_level_that_the_agent_was_told_is_logged(host, workspace):
    queries = "omada router", "aardvark", "Who sold the omada router of our grandmother?"
    told = [ask(host, query=query).get("answerLevel", {"level": ""}) for query in queries]
    ask(host, query="omada", corpus="sessions")
    entries = recall_log.read(recall_log.recall_log_path(workspace)).entries
    assert [one.level for one in entries] == [*(one["level"] for one in told), ""]
    assert {"found", NOTHING} <= {one.level for one in entries}
    assert entries[-1].reply == "failed"


def test_counts_are_of_questions_alone():
    found, old = entry(level="found", mode="hybrid", hits=(HIT,)), entry(mode="hybrid", hits=(HIT,))
    failed, read = entry(outcome="No index."), RecallEntry("memory_get", "MEMORY.md", 1.0)
    log = recall_log.Log((found, old, read, found, failed), 0)
    assert log.tally == "2 found, 1 failed, 1 under a ranking that tells no level"
    assert recall_log.Log((read,), 0).tally == ""
    assert (found.best, old.best) == ("best score 0.50", "best score 0.50")
    assert not entry(level="nearby only", mode="hybrid", hits=(HIT,)).best, "it is the best of what may not answer"


def again(logged, chosen):
    with synced(chosen) as engine:
        return recall_log.replay(logged, engine.plan.settings, engine.search.gather)


def test_a_replay_tells_then_from_now_and_what_changed_since(host, workspace):
    ask(host, query="omada router", maxResults=2)
    logged = logged_last(workspace)
    same = again(logged, options(workspace))
    assert (same.same, same.since) == (True, ())
    assert same.now.settings.whole("query.maxResults") == 2
    assert "The same would come now, in the same order." in recall_log.replayed(same)
    turned = again(logged, options(workspace, changes=(("query.minScore", "0.99"),)))
    assert turned.since == ("query.minScore was 0.0, is 0.99",)
    (workspace / "memory" / "2026-11-19.md").write_text("omada router omada router\n")
    (workspace / "memory" / "2026-11-18.md").unlink()
    later = again(logged, options(workspace))
    assert (later.same, later.since) == (False, ("notes were indexed",))
    changes = {(c.path, c.place_then, c.place_now is None) for c in later.changes}
    assert changes >= {("memory/2026-11-18.md", 2, True), ("memory/2026-11-19.md", None, False)}
    told = "\n".join(recall_log.replayed(later))
    assert "Of 2 delivered hits 1 would come now, and 1 other.\nSince then: notes were indexed.\n" in told
    assert "  memory/2026-11-18.md#L1  then 2nd with " in told
    (workspace.parent / "i.sqlite").unlink()
    assert again(logged, options(workspace)).since == ("the index was made anew",)
    moved = again(logged, replace(options(workspace), provider="builtin"))
    assert moved.since[0].startswith("vectors of scripted ")


def logged_last(workspace):
    return recall_log.read(recall_log.recall_log_path(workspace)).entries[-1]


def test_the_log_holds_what_was_delivered_after_the_cut(workspace, run):
    for day in range(1, 9):
        text = "omada router " + " ".join(f"word{day}{n}" for n in range(day * 4))
        (workspace / "memory" / f"2026-10-{day:02}.md").write_text(text + "\n")
    made = ServedMemory(lambda: Engine.open(options(workspace)), ServerOptions(log=True, max_injected_chars=200))
    answer = ask(made, query="omada router")
    made.close()
    logged = logged_last(workspace)
    assert 0 < len(answer["results"]) < 6
    places = [(hit["path"], hit["startLine"]) for hit in answer["results"]]
    assert [(hit.path, hit.start_line) for hit in logged.hits] == places
    assert (logged.ranked, logged.most_characters) == (6, 200)
    assert [hit.cut for hit in logged.hits][-1] is bool(answer["clamped"]["cut"])
    found = again(logged, options(workspace))
    last = found.now.recalled[5].chunk
    assert found.same, "what was only kept back then has not moved"
    said = run("recall-log", logged.id, "--why", f"{last.path}:{last.start_line}")[1]
    assert said.startswith("By the log it was not delivered.\n")
    first = logged.hits[0]
    said = run("recall-log", logged.id, "--why", f"{first.path}:{first.start_line}", "--json")[1]
    sentence = "By the log it was delivered as the 1st hit."
    assert json.loads(said)["log"] == {"delivered": 1, "sentence": sentence, "since": []}
    told = run("recall-log", logged.id)[1]
    assert "of 6 hits fit in 200 characters" in told
    assert "then not delivered, now 6th" in told
    assert json.loads(run("recall-log", logged.id, "--json")[1])["changes"][5]["placeThen"] is None


def test_what_was_kept_back_then_may_come_now(host, workspace):
    ask(host, query="aardvark burrow")
    logged = logged_last(workspace)
    assert (logged.level, logged.hits) == (NOTHING, ())
    assert logged.ranked
    still = again(logged, options(workspace))
    assert NOBODY_EITHER in recall_log.replayed(still)
    (workspace / "memory" / "2026-11-19.md").write_text("The aardvark burrow is behind the shed.\n")
    later = again(logged, options(workspace))
    assert (still.same, later.same) == (True, False)
    told = "\n".join(recall_log.replayed(later))
    assert "Answer: not answered then, found now." in told
    assert "would come now, where none was delivered" in told
    ask(host, query="omada router price")
    part = again(logged_last(workspace), options(workspace))
    assert part.now.level.in_part
    assert part.entry.reply == "found in part", "as Search says"
    words = f"Answer: found in part then and now: {part.now.level.in_part}."
    assert words in recall_log.replayed(part)


def test_an_answer_that_came_too_late_was_not_delivered(host, workspace):
    ask(host, query="omada")

    class GivenUp(Stop):
        """Set, but only found so when the answer is there."""

        def is_set(self):
            return True

        def check(self):
            """The search runs on."""

    host.answer(SEARCH, {"query": "omada"}, Caller("c", {}, GivenUp()))
    entry_ = logged_last(workspace)
    assert entry_.hits == ()
    assert "too late" in entry_.outcome
    assert (entry_.level, entry_.reply) == ("", "failed")


def test_knobs_that_are_not_accepted_any_more_are_left_as_they_are():
    odd = entry(settings={"query.minScore": 7, "query.maxResults": 3, "profile": "openclaw-2031"})
    settings = recall_log.settings_of(odd.settings, Settings.defaults())
    assert settings.whole("query.maxResults") == 3
    assert settings.number("query.minScore") == 0.35
    assert settings.word("profile") == "auto"


@pytest.fixture
def run(workspace, command):
    place = ["--workspace", str(workspace), "--index", str(workspace.parent / "i.sqlite"), "--provider", "scripted"]
    return partial(command, *place)


def test_the_command_lists_shows_explains_and_clears(run, host, workspace):
    assert "--log-recalls" in run("recall-log")[1]
    host.answer(SEARCH, {"query": "omada router", "maxResults": 1}, Caller("agent 1", {}, Stop()))
    host.answer(SEARCH, {"query": "\x1b[31mgiraffe"}, Caller("agent 1", {}, Stop()))
    host.answer(GET, {"path": "MEMORY.md"}, Caller("agent 1", {}, Stop()))
    host.close()
    code, out, _ = run("recall-log")
    assert code == 0
    assert "omada router  found, best score 1.00, 1 hit  " in out
    assert out.endswith("2 questions: 1 found, 1 not answered.\n")
    assert "read MEMORY.md" in out
    assert "\x1b" not in out
    listed = json.loads(run("recall-log", "--json", "-n", "3")[1])
    assert listed["total"] == 3
    assert listed["replies"] == {"found": 1, "not answered": 1}
    replies = [(one["reply"], one["level"]) for one in listed["recalls"]]
    assert replies == [("found", "found"), ("not answered", NOTHING), (None, "")]
    name = listed["recalls"][0]["id"]
    told = run("recall-log", name[:4])[1]
    assert "The same would come now" in told
    assert "Answer: found then and now." in told
    assert json.loads(run("recall-log", name, "--json")[1])["same"] is True
    why = json.loads(run("recall-log", name, "--why", "memory/2026-11-18.md", "--json")[1])
    assert why["query"] == "omada router"
    assert "giraffe" in run("recall-log", "last")[1]
    assert why["recalled"] is False
    assert why["verdict"]["kind"] in ("beyond_limit", "below_min_score", "not_matched")
    assert run("recall-log", "nosuch")[0] == 2
    assert run("recall-log", listed["recalls"][2]["id"])[0] == 2
    assert run("recall-log", "--why", "MEMORY.md")[0] == 2
    assert run("recall-log", "--clear")[1] == "The recall log is deleted.\n"
    assert run("recall-log", "--clear")[1] == "There is no recall log.\n"
    assert not recall_log.recall_log_path(workspace).exists()


@pytest.mark.parametrize("characters", ["0", "3000"])
def test_what_is_logged_is_what_went_out_without_copies_and_by_lines(tmp_path, characters):
    text = "The omada router of the house stands in the closet behind the coats and hats.\n"
    folder = put_all(tmp_path / "notes", {f"memory/copy-{number}.md": text for number in range(4)})
    for number in range(9):
        more = f"Router {number} was sold to neighbour {number}, with cable {number * 7} and box {number * 3}.\n"
        put_all(folder, {f"memory/other-{number}.md": more + f"filler {number} words here and there\n" * 60})
    changes = ("sync.watch=false", "sync.onSearch=false", f"query.maxCharacters={characters}")
    options = options_in(tmp_path, *changes, provider="builtin")
    with Engine.open(options) as engine:
        engine.index.sync()
    host = ServedMemory(lambda: Engine.open(options), ServerOptions(log=True))
    answer = host.answer(SEARCH, {"query": "omada router closet"}, Caller("a client", {}, Stop()))
    host.close()
    (entry,) = recall_log.read(recall_log.recall_log_path(folder)).entries
    went = [(row["path"], row["startLine"], row["endLine"]) for row in answer["results"]]
    for hit, (path, first, last), row in zip(entry.hits, went, answer["results"], strict=True):
        assert hit.path == path
        assert first <= hit.lines[0] <= hit.lines[1] <= last
        assert hit.lines[1] - hit.lines[0] == row["snippet"].removesuffix("\n").count("\n")
    assert answer["results"][0]["copies"] == 3
    with Engine.open(options) as engine:
        found = recall_log.replay(entry, engine.plan.settings, engine.search.gather)
        assert found.same
        shown = [line.split()[0] for line in recall_log.replayed(found) if line.startswith("  ")]
        assert shown == [prompt.citation(hit.path, *hit.lines) for hit in entry.hits]
        copy = next(other.path for other in found.now.recalled[0].copies if other.path != went[0][0])
        (path, *_), (_, last) = went[1], entry.hits[1].lines
        lines = range(entry.hits[1].start_line, entry.hits[1].end_line + 1)
        unsent = [line for line in lines if engine.search.why(found.now.evidence, path, line).unsent]
    assert recall_log.delivered(entry, copy, 1)[0] is None
    assert recall_log.delivered(entry, path, last)[0] == 2
    for line in lines:
        came, said = recall_log.delivered(entry, path, line)
        assert came or f"line {line} was not delivered: the agent got {path}#L" in said
        assert bool(came) == any(h.path == path and h.lines[0] <= line <= h.lines[1] for h in entry.hits)
    assert unsent == [line for line in lines if not recall_log.delivered(entry, path, line)[0]]
