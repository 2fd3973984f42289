"""The keeper answers for other processes what they would say by themselves, and nobody needs it to answer."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memory_tui.cli.main import main
from memory_tui.core import locks
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, MemoryTuiError, QueryError
from memory_tui.core.events import Event, Noticed
from memory_tui.engine.engine import Engine
from memory_tui.mcp import keeper, keeper_socket
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.mcp.keeper import KeeperClient
from memory_tui.mcp.keeper_socket import KeeperRefusal, KeeperReply, KeeperSocket, Patience, ask, socket_path
from memory_tui.mcp.questions import AgentQuestion, Answered, answered
from memory_tui.plan import Options, plan
from memory_tui.recalls import recall_log
from memory_tui.render.as_text import SearchCommand
from memory_tui.search.corpus import products
from tests.support.mcp import Wire, end_all
from tests.support.waiting import LONG

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="sockets have no files here")
NOW = 1_795_000_000.0
SEARCHED = (
    "omada router",
    "Which router?",
    "printer vlan",
    "zebra",
    "",
    "décembre 日本",
    'say "quoted" \\ \ud83d',
    "x" * 3000,
)


@pytest.fixture
def near() -> Iterator[Path]:
    """A folder whose path is short enough for a socket, however long the name of the test is."""
    with tempfile.TemporaryDirectory(prefix="k") as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def _near_state(near: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(near))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n- Printer: Brother, VLAN 20\n")
    (folder / "memory" / "2026-11-10.md").write_text("# Log\nMoved the printer to VLAN 20\nThe router was slow\n")
    (folder / "memory" / "日本.md").write_text("# 日本\nルーター Omada \u202e\n")
    return folder


def until(fact: Callable[[], object]) -> None:
    """Wait for a fact."""
    end = time.monotonic() + LONG
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.01)


def options(workspace: Path, **more: Any) -> Options:
    return Options(workspace=str(workspace), index=str(workspace.parent / "i.sqlite"), now=NOW, **more)


def client(workspace: Path, **more: Any) -> KeeperClient:
    return KeeperClient(plan(options(workspace, **more)))


def rest(engine: Engine) -> None:
    """Until the writer has nothing to do, and from then on: while it scans, a command answers by itself."""
    engine.indexer.watcher.switch(False)
    until(engine.indexer.is_current)


@pytest.fixture
def kept(workspace: Path) -> Iterator[Engine]:
    """An engine that keeps the index and answers others."""
    with Engine.open(options(workspace)) as engine:
        engine.indexer.sync()
        keeper.serve(engine)
        engine.start()
        here = client(workspace)
        until(lambda: isinstance(here.greet(), KeeperReply))
        yield engine


def test_a_state_folder_that_nobody_may_read_costs_no_answer(
    near: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the superuser, whom no mode keeps out, the folder is closed by hand."""

    def closed(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any = ".", *args: Any, **named: Any) -> Any:
            if isinstance(path, str | os.PathLike) and near in Path(path).parents:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **named)

        return call

    for name in ("stat", "scandir", "listdir"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))
    found = client(workspace).greet()
    assert isinstance(found, KeeperRefusal)
    assert found.code == "absent"


# --- the same answers ----------------------------------------------------------------------------------------------


def outcome(run: Callable[[], Answered | KeeperRefusal]) -> tuple[object, ...]:
    """What came of a question: the answer as JSON, and what would be logged, without the moments."""
    try:
        found = run()
    except QueryError as error:
        return type(error), error.message, error.next_step
    assert isinstance(found, Answered), found
    said = found.as_dict()
    if said["entry"] is not None:
        assert said["entry"].pop("ms") > 0
        assert abs(said["entry"].pop("at") - time.time()) < LONG
    return (json.dumps(said),)


def test_the_keeper_says_to_the_digit_what_a_process_says_by_itself(kept: Engine, workspace: Path) -> None:
    asked = [
        AgentQuestion("memory_search", {"query": query, **more}, "some agent 1", log=log, **how)
        for query in SEARCHED
        for more, log, how in (
            ({}, True, {}),
            ({"maxResults": 2, "minScore": 0.1, "maxCharacters": 0}, False, {"citations": "on"}),
            ({"corpus": "memory", "nearest": True}, True, {"late": True, "most_characters": 40}),
            ({"corpus": "sessions", "maxResults": "many"}, None, {"session_key": "agent:main:telegram:group:1"}),
        )
    ]
    asked += [
        AgentQuestion("memory_get", given, log=True)
        for given in (
            {"path": "MEMORY.md"},
            {"path": "memory/日本.md", "from": 2, "lines": 1},
            {"path": "memory/none.md"},
            {"path": "../secret.md"},
            {"path": "MEMORY.md", "from": "no number"},
        )
    ]
    asked += [
        AgentQuestion("memory-tui/search", {"query": "router", "lexicalOnly": True}),
        AgentQuestion("memory-tui/search", {"query": "router", "sources": ["memory"]}),
        AgentQuestion("memory-tui/entries", {"with": "triggers"}),
        AgentQuestion("memory-tui/entries", {"with": "nothing"}),
        AgentQuestion("memory-tui/status", {}),
    ]
    theirs = client(workspace)
    # Rows that are added one by one lie elsewhere than those that a process reads at once.
    for number in range(7):
        (workspace / "memory" / f"2026-11-0{number + 1}.md").write_text(f"# Log\nThe router is number {number}\n")
        kept.queries.search("router")
        kept.indexer.sync()
    with Engine.open(options(workspace)) as own:
        for question in asked:
            by_keeper = outcome(lambda question=question: theirs.ask(question, Stop()))
            assert by_keeper == outcome(lambda question=question: answered(own, question, Stop())), question


@pytest.mark.skipif(sys.platform != "linux", reason="other systems bring other libraries for products")
def test_a_product_is_the_same_to_the_digit_wherever_its_row_stands() -> None:
    generator = np.random.default_rng(7)
    for dims in (8, 256, 384):
        rows = generator.standard_normal((23, dims)).astype(np.float32)
        vector = generator.standard_normal(dims).astype(np.float32)
        whole = products(rows, vector)
        for first in range(9):
            for last in range(first, 24):
                assert (products(rows[first:last].copy(), vector) == whole[first:last]).all()


class Tty(io.StringIO):
    """Standard output where a person reads it."""

    def isatty(self) -> bool:
        return True


def test_a_search_of_the_command_line_writes_the_same_with_a_keeper_and_without(
    kept: Engine, workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "COMMAND_PATIENCE", Patience(LONG, LONG))
    for number in range(7):
        (workspace / "memory" / f"2026-11-0{number + 1}.md").write_text(f"# Log\nThe router is number {number}\n")
        kept.indexer.sync()
    rest(kept)
    now = dt.datetime.fromtimestamp(NOW, dt.UTC).isoformat()
    send = KeeperClient._send
    answers: list[object] = []

    def noted(self: KeeperClient, *asked: Any) -> object:
        answers.append(send(self, *asked))
        return answers[-1]

    def written(query: str, *words: str, screen: bool = False) -> tuple[object, ...]:
        index = str(workspace.parent / "i.sqlite")
        with monkeypatch.context() as patched:
            shown = Tty()
            if screen:
                patched.setenv("TERM", "xterm")
                patched.setattr(sys, "stdout", shown)
            code = main(["search", "--workspace", str(workspace), "--index", index, "--now", now, *words, "--", query])
        out, err = capsys.readouterr()
        # How long each stage took differs from run to run.
        return code, re.sub(r'"timings": {[^}]*}', "", out), err, shown.getvalue()

    ways = (("--json",), ("--explain",), ("--source", "memory"), ("--source", "sessions"), ("--explain", "--json"))
    questions = [*((query, (), False) for query in SEARCHED), *((SEARCHED[0], words, False) for words in ways)]
    questions += [("router", words, True) for words in ((), ("--full",), ("-n", "2"))]
    limits = (
        ("-n", "3"),
        ("--min-score", "0.9"),
        ("--max-characters", "300"),
        ("--set", "query.minScore=0.6", "-n", "1"),
    )
    questions += [
        ("router number", (*words, *form), False) for words in limits for form in ((), ("--json",), ("--explain",))
    ]
    monkeypatch.setattr(KeeperClient, "_send", noted)
    by_keeper = [written(query, *words, screen=screen) for query, words, screen in questions]
    monkeypatch.setattr(KeeperClient, "search", lambda *_: None)
    for (query, words, screen), found in zip(questions, by_keeper, strict=True):
        assert found == written(query, *words, screen=screen), (query, words)
    assert len(answers) + sum(outcome[0] != 0 for outcome in by_keeper) >= len(questions)
    assert [one for one in answers if isinstance(one, KeeperRefusal)] == [], "the keeper answered each of them"


def test_a_search_that_the_keeper_cannot_answer_answers_by_itself(
    kept: Engine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "COMMAND_PATIENCE", Patience(LONG, LONG))
    rest(kept)
    asked = SearchCommand("router")
    assert client(workspace).search(asked)
    assert client(workspace, provider="none").search(asked) is None
    (workspace / "MEMORY.md").write_text("# Facts\n- Router: another one\n")
    assert client(workspace).search(asked) is None
    assert client(workspace).search(SearchCommand("router", terminal="wide")) is None  # type: ignore[arg-type]


def test_the_keeper_takes_limits_of_an_answer_and_no_other_knob(
    kept: Engine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "COMMAND_PATIENCE", Patience(LONG, LONG))
    rest(kept)
    limited = client(workspace).search(SearchCommand("router", limits=(("query.maxResults", "1"),)))
    assert limited is not None
    for limits in ((("query.hybrid.vectorWeight", "0.1"),), (("query.maxResults", "many"),)):
        with pytest.raises(MemoryTuiError):
            client(workspace).search(SearchCommand("router", limits=limits))
    for malformed in ("many", [["query.maxResults"]], [["query.maxResults", 1]]):
        assert SearchCommand.from_dict({**SearchCommand("router")._asdict(), "limits": malformed}) is None


def test_status_says_which_process_answers(kept: Engine, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def status(moment: float, *words: str) -> str:
        now = dt.datetime.fromtimestamp(moment, dt.UTC).isoformat()
        index = str(workspace.parent / "i.sqlite")
        assert main(["status", "--workspace", str(workspace), "--index", index, "--now", now, *words]) == 0
        return capsys.readouterr().out

    assert f"of servers and of memory-tui search with these settings process {os.getpid()} answers" in status(NOW)
    assert json.loads(status(NOW, "--json"))["questions"]["by"] == "keeper"
    assert (
        "each server, and each memory-tui search, answers by itself: the keeper works with other settings (options)"
        in status(NOW + 60)
    )


def test_who_works_with_other_settings_answers_by_itself(
    kept: Engine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thing that an answer depends on is told apart, and named."""

    def refused(**more: Any) -> str:
        found = client(workspace, **more).greet()
        assert isinstance(found, KeeperRefusal)
        assert found.code == "settings"
        return found.detail

    assert isinstance(client(workspace).greet(), KeeperReply)
    assert "settings" in refused(changes=(("query.minScore", "0.2"),))
    assert "settings" in refused(changes=(("profile", "openclaw-2026.3"),))
    assert "options" in refused(provider="scripted")
    assert "notes" in refused(projects=("house",))
    assert "notes" in refused(extra=(str(workspace.parent),))
    assert "options" in refused(read_only=True)
    # A key counts where the provider may be asked; of one that nobody approved it changes nothing.
    chosen = plan(options(workspace, provider="openai"))
    before = keeper.settings_digests(chosen)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert isinstance(client(workspace).greet(), KeeperReply)
    assert {part for part, digest in keeper.settings_digests(chosen).items() if digest != before[part]} == {"provider"}
    kept.providers.approvals.approve("openai", "api.openai.com", "test")
    assert refused() == "provider"
    kept.providers.approvals.revoke()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert refused() == "environment"


def test_a_configuration_that_was_written_since_is_another_one(kept: Engine, workspace: Path, tmp_path: Path) -> None:
    written = Path(os.environ["XDG_CONFIG_HOME"]) / "memory-tui" / "config.json"
    written.parent.mkdir(exist_ok=True)
    written.write_text('{"recall": {"log": true}}')
    found = client(workspace).greet()
    assert isinstance(found, KeeperRefusal)
    assert found.code == "settings"
    assert "configuration" in found.detail


def test_trouble_of_the_keeper_alone_is_no_answer(kept: Engine, workspace: Path) -> None:
    from memory_tui.core.errors import IndexUnavailable
    from memory_tui.index.index_notices import IndexNotUsed

    kept.indexer.opener.notices.append(IndexNotUsed.of("i", IndexUnavailable("It was full.")))
    found = client(workspace).ask(AgentQuestion("memory_search", {"query": "router"}), Stop())
    assert isinstance(found, KeeperRefusal)
    assert found.code == "unwell"


# --- the host of a server ------------------------------------------------------------------------------------------


@pytest.fixture
def light(workspace: Path) -> Iterator[ServedMemory]:
    """A server's host that may ask a keeper."""
    made = ServedMemory(
        lambda: Engine.open(options(workspace)), ServerOptions(log=True), lambda: plan(options(workspace))
    )
    yield made
    made.close()


def logged(workspace: Path) -> list[tuple[str, str]]:
    return [(one.query, one.client) for one in recall_log.read(recall_log.recall_log_path(workspace)).entries]


def test_a_server_opens_no_memory_while_a_keeper_answers(kept: Engine, light: ServedMemory, workspace: Path) -> None:
    found = light.search({"query": "omada router"}, "", "agent 1", Stop())
    assert found["results"][0]["path"] == "MEMORY.md"
    assert light.get({"path": "MEMORY.md"}, "agent 1")["status"] == "ok"
    assert light.profile() == "recommended"
    assert light.citations() == "auto"
    assert light._memory is None
    assert logged(workspace) == [("omada router", "agent 1"), ("MEMORY.md", "agent 1")]


def test_without_a_keeper_a_server_answers_by_itself(light: ServedMemory, workspace: Path) -> None:
    found = light.search({"query": "omada router"}, "", "agent 1", Stop())
    assert found["results"][0]["path"] == "MEMORY.md"
    assert light._memory is not None
    until(lambda: isinstance(client(workspace).greet(), KeeperReply))


HANGING = """
import sys, time
from memory_tui.core.locks import WriterLock
from memory_tui.mcp import keeper
from memory_tui.mcp.keeper_socket import KeeperSocket
from memory_tui.plan import Options, plan
chosen = plan(Options(workspace=sys.argv[1], index=sys.argv[2], now=float(sys.argv[3])))
held = WriterLock.acquire(chosen.index, "keeper")
def answer(question, stop):
    if not question:
        return {}
    print("asked", flush=True)
    time.sleep(600)
listening = KeeperSocket(keeper.path_of(chosen), keeper.VERSION, keeper.settings_digests(chosen), answer)
listening.listen()
print("listening", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hanging(workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """A keeper in another process that takes every question and answers none."""
    child = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(workspace), str(workspace.parent / "i.sqlite"), str(NOW)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "listening\n"
    yield child
    child.kill()
    child.communicate()


def test_a_keeper_that_is_killed_in_the_middle_of_a_question_costs_no_answer(
    hanging: subprocess.Popen[str], light: ServedMemory, workspace: Path
) -> None:
    answers: list[Any] = []
    asking = threading.Thread(
        target=lambda: answers.append(light.search({"query": "omada router"}, "", "agent 1", Stop()))
    )
    asking.start()
    assert hanging.stdout is not None
    assert hanging.stdout.readline() == "asked\n"
    hanging.send_signal(signal.SIGKILL)
    asking.join(LONG)
    assert answers[0]["results"][0]["path"] == "MEMORY.md"
    assert logged(workspace) == [("omada router", "agent 1")]
    # What it left behind is in nobody's way.
    until(lambda: isinstance(client(workspace).greet(), KeeperReply))


def test_who_waits_for_a_keeper_can_be_stopped_and_waits_for_a_bounded_time(
    hanging: subprocess.Popen[str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, question = client(workspace), AgentQuestion("memory_search", {"query": "router"})
    with monkeypatch.context() as hurried:
        hurried.setattr(keeper, "ANSWER_SECONDS", 0.1)
        assert theirs.ask(question, Stop()) == KeeperRefusal("late")
    stop = Stop()
    assert hanging.stdout is not None
    assert hanging.stdout.readline() == "asked\n"
    threading.Thread(target=lambda: (hanging.stdout.readline(), stop.set())).start()
    with pytest.raises(Cancelled):
        client(workspace).ask(question, stop)


def test_a_frozen_keeper_is_not_waited_for(
    hanging: subprocess.Popen[str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_socket, "TAKEN_SECONDS", 0.1)
    hanging.send_signal(signal.SIGSTOP)
    assert client(workspace).greet() == KeeperRefusal("silent")


def test_two_servers_share_one_memory_and_the_second_takes_over(workspace: Path) -> None:
    """As processes: one memory is opened for both, both answer the same, and the index is kept when the first dies."""
    words = ["--workspace", str(workspace), "--index", str(workspace.parent / "i.sqlite")]
    words += ["--now", "2026-11-20T12:00:00Z"]
    try:
        first, second = Wire(words), Wire(words)
        first.greet()
        # Its first answer may come while notes are being indexed, and then says so.
        until(lambda: "stale" not in first.search(1)["result"]["structuredContent"])
        alone = first.search(1)["result"]
        index = workspace.parent / "i.sqlite"
        until(lambda: (who := locks.living(index, "keeper")) is not None and who.pid == first.process.pid)
        second.greet()
        assert second.search(1)["result"] == alone
        if sys.platform == "linux":
            assert "numpy" in Path(f"/proc/{first.process.pid}/maps").read_text()
            assert "numpy" not in Path(f"/proc/{second.process.pid}/maps").read_text()
        first.process.kill()
        first.process.wait()
        until(lambda: (who := locks.living(index, "keeper")) is not None and who.pid == second.process.pid)
        assert second.search(2)["result"] == alone
        second.end()
    finally:
        end_all()


# --- the socket ----------------------------------------------------------------------------------------------------


@pytest.fixture
def listening(near: Path) -> Iterator[KeeperSocket]:
    """A socket that echoes, and fails when it is asked to."""

    def answer(question: Any, stop: Stop) -> Any:
        if question.get("wait"):
            stop.wait(LONG)
            stop.check()
        if question.get("fail"):
            raise QueryError("query required", "Say it.")
        return {"echo": question}

    path = socket_path(near / "index", "1", near)
    assert path is not None
    made = KeeperSocket(path, "1", {"a": "1", "b": "2"}, answer)
    made.listen()
    yield made
    made.close()


def put(made: KeeperSocket, question: dict[str, Any], version: str = "1", **settings: str) -> Any:
    return ask(made.path, version, {"a": "1", "b": "2", **settings}, question, Patience(LONG, LONG), Stop())


def test_the_socket_is_for_its_user_alone(listening: KeeperSocket) -> None:
    assert stat.S_IMODE(listening.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(listening.path.parent.stat().st_mode) == 0o700


def test_questions_answers_errors_and_refusals_come_back_as_they_are(listening: KeeperSocket) -> None:
    asked = {"float": 0.1 + 0.2, "half": "\ud83d", "list": [None, True, -1], "日本": {"": ""}}
    assert put(listening, asked) == KeeperReply(os.getpid(), {"echo": asked})
    failed = {"name": "QueryError", "message": "query required", "nextStep": "Say it."}
    assert put(listening, {"fail": True}).value == {"error": failed}
    assert put(listening, {}, version="2") == KeeperRefusal("version")
    assert put(listening, {}, b="3", c="4") == KeeperRefusal("settings", "b, c")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"no JSON\n", "malformed"),
        (b"[1]\n", "malformed"),
        (b"[" * 100_000 + b"\n", "malformed"),
        (b'{"version": "0"}\n', "version"),
        (b'{"version": "1", "settings": 3, "question": {}}\n', "malformed"),
        (b'{"version": "1", "settings": {"a": "1"', "malformed"),
        (b"\xff\xfe\n", "malformed"),
        (b'{"x": "' + b"y" * (keeper_socket.REQUEST_BYTES + 100_000), "malformed"),
        (b"", "malformed"),
    ],
    ids=["words", "list", "deep", "old", "types", "cut", "bytes", "huge", "empty"],
)
def test_hostile_lines_are_refused_and_harm_nobody(listening: KeeperSocket, sent: bytes, code: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bare:
        bare.settimeout(LONG)
        bare.connect(str(listening.path))
        with contextlib.suppress(OSError):
            bare.sendall(sent)
            bare.shutdown(socket.SHUT_WR)
        assert json.loads(bare.recv(1 << 16))["refused"] == code
    assert put(listening, {"q": 1}).value == {"echo": {"q": 1}}


def test_who_sends_nothing_is_let_go(listening: KeeperSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_socket, "_LINE_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow:
        slow.settimeout(LONG)
        slow.connect(str(listening.path))
        assert slow.recv(1) == b""
    assert put(listening, {}).value == {"echo": {}}


def test_too_many_are_told_so(listening: KeeperSocket) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(keeper_socket._MOST_CONNECTIONS):
            one = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            one.connect(str(listening.path))
        assert put(listening, {}) == KeeperRefusal("busy")
    until(lambda: isinstance(put(listening, {}), KeeperReply))


def test_a_keeper_that_ends_tells_who_waits_and_ends_at_once(listening: KeeperSocket) -> None:
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(put(listening, {"wait": True})))
    waiting.start()
    until(lambda: listening._running._value < keeper_socket._MOST_RUNNING)  # type: ignore[attr-defined]
    began = time.monotonic()
    listening.close()
    assert time.monotonic() - began < 0.5
    waiting.join(LONG)
    assert found[0].code in ("closing", "gone")
    assert not listening.path.exists()
    assert put(listening, {}) == KeeperRefusal("absent")


def test_what_a_killed_keeper_left_is_replaced_and_what_is_no_socket_stays(near: Path) -> None:
    path, other = (socket_path(near / "index", version, near) for version in "12")
    assert path is not None
    assert other is not None
    path.parent.mkdir(mode=0o700)
    for stale in (path, other):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
            dead.bind(str(stale))
    made = KeeperSocket(path, "1", {}, lambda question, _: question)
    made.listen()
    assert not other.exists()
    assert ask(path, "1", {}, {"q": 1}, Patience(LONG, LONG), Stop()) == KeeperReply(os.getpid(), {"q": 1})
    # Another keeper, which has the lock now, made its own: that stays.
    path.unlink()
    path.write_text("not a socket")
    made.close()
    assert path.read_text() == "not a socket"
    again = KeeperSocket(path, "1", {}, lambda question, _: question)
    with pytest.raises(OSError, match="in use"):
        again.listen()
    again.close()
    assert path.read_text() == "not a socket"


def test_a_folder_that_is_open_to_others_gets_no_socket(near: Path) -> None:
    path = socket_path(near / "index", "1", near)
    assert path is not None
    path.parent.mkdir()
    path.parent.chmod(0o755)
    made = KeeperSocket(path, "1", {}, lambda question, _: question)
    with pytest.raises(PermissionError):
        made.listen()
    made.close()


def test_a_thread_that_ends_after_the_goodbye_leaves_no_file_open(near: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = socket_path(near / "index", "1", near)
    assert path is not None
    woken = threading.Event()
    monkeypatch.setattr(keeper_socket, "_GOODBYE_SECONDS", 0)
    monkeypatch.setattr(keeper_socket, "select", SimpleNamespace(select=lambda *_: woken.wait(LONG)))
    made = KeeperSocket(path, "1", {}, lambda question, _: question)
    made.listen()
    made.close()
    assert made._woken.fileno() >= 0
    woken.set()
    made._thread.join(LONG)
    assert made._woken.fileno() == -1


def test_a_keeper_without_a_socket_says_so_and_keeps_the_index(near: Path, workspace: Path) -> None:
    (near / "memory-tui" / "keeper").mkdir(parents=True)
    (near / "memory-tui" / "keeper").chmod(0o755)
    heard: list[Event] = []
    with Engine.open(options(workspace), heard.append) as engine:
        keeper.serve(engine)
        assert engine.indexer.leadership.leads()
    [said] = [event.text for event in heard if isinstance(event, Noticed)]
    assert "is open to others" in said
    assert "Each opens the memory by itself." in said


def test_a_path_too_long_goes_to_the_runtime_folder_or_nowhere(near: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = near / ("deep" * 20) / ("deeper" * 10)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert socket_path("index", "1", far) is None
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    found = socket_path("index", "1", far)
    assert found is not None
    assert found.parent == Path("/run/user/1/memory-tui")
    assert found != socket_path("index", "1", far / "another")
    monkeypatch.delattr(socket, "AF_UNIX")
    assert socket_path("index", "1", near) is None


def test_where_no_file_can_be_opened_each_answers_by_itself(
    near: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = near / "i-1.sock"

    def full(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socketpair", full)
    heard: list[Event] = []
    leadership = locks.Leadership(lambda: workspace.parent / "i.sqlite", heard.append)
    leadership.serve_with(lambda: KeeperSocket(path, "1", {}, lambda question, _: question))
    assert leadership.leads()
    assert "(Too many open files)" in next(event.text for event in heard if isinstance(event, Noticed))
    leadership.close()
    monkeypatch.setattr(socket, "socket", full)
    assert ask(path, "1", {}, {}, Patience(1, 1), Stop()) == KeeperRefusal("absent", "Too many open files")


def test_a_demo_leaves_no_socket_behind(workspace: Path) -> None:
    assert keeper.path_of(plan(options(workspace))) is not None
    assert keeper.path_of(plan(options(workspace, sample=True))) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser can be another user")
def test_another_user_is_refused(near: Path) -> None:
    path = near / "keeper" / "i-1.sock"
    made = KeeperSocket(path, "1", {}, lambda question, _: question)
    made.listen()
    try:
        for folder in (near, path.parent):
            folder.chmod(0o755)
        path.chmod(0o666)
        connect = (
            "import os, socket, sys\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n"
            "s.connect(sys.argv[1]); print(s.recv(1000).decode())\n"
        )
        done = subprocess.run([sys.executable, "-c", connect, str(path)], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["refused"] == "foreign"
    finally:
        made.close()
