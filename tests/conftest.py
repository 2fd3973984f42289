"""What every test starts from: no settings of the developer, one time zone, the shared data when it is there."""

import contextlib
import gc
import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

# Textual reads these when it is imported.
os.environ["TEXTUAL_ANIMATIONS"] = "none"
os.environ["TZ"] = "UTC"
time.tzset()
_OF_THE_DEVELOPER = """
NO_COLOR COLUMNS LINES TEXTUAL_THEME CLAUDE_CONFIG_DIR CODEX_HOME WATCHFILES_FORCE_POLLING
OPENCLAW_CONFIG_PATH OPENCLAW_STATE_DIR OPENCLAW_PROFILE OPENCLAW_HOME OPENCLAW_WORKSPACE_DIR CLAWDBOT_STATE_DIR
CLAWDBOT_CONFIG_PATH OPENCLAW_AGENT_DIR OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY VOYAGE_API_KEY MISTRAL_API_KEY
GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
PYTHONDONTWRITEBYTECODE
"""
"""The servers of the tests are on loopback, so no proxy is on the way; none of hundreds of processes compiles anew."""
for _name in _OF_THE_DEVELOPER.split():
    os.environ.pop(_name, None)

import pytest  # noqa: E402 - after the environment is set
from hypothesis import HealthCheck, settings  # noqa: E402

from memory_tui.cli import main  # noqa: E402
from tests.support.mcp import end_all  # noqa: E402
from tests.support.paths import SHARED, oracles  # noqa: E402
from tests.support.waiting import LONG, Heard  # noqa: E402

# Each app and each index of a test makes many objects that live as long as it does: looking at all of them 300 times a
# minute was a tenth of the suite's time.
gc.set_threshold(50_000, 20, 50)

# The same examples in every run, and none against the clock: a change is judged by what it did, not by the dice or by
# the load of the machine. `HYPOTHESIS_PROFILE=explore pytest` rolls new ones.
_UNHURRIED = {"deadline": None, "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large)}
settings.register_profile("steady", derandomize=True, database=None, max_examples=50, **_UNHURRIED)
settings.register_profile("explore", print_blob=True, **_UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

PLACES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")


@pytest.fixture(autouse=True, scope="session")
def _private_places_of_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nor does what a whole module shares, which is made before the places of its first test are."""
    home = tmp_path_factory.mktemp("home-of-modules")
    with pytest.MonkeyPatch.context() as patch:
        for name in PLACES:
            patch.setenv(name, str(home))
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_the_disk() -> Iterator[None]:
    """Nothing is flushed: what a power cut leaves is worked out by `tests/support/faults.py`, none pulls the plug."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", os.fstat)
        yield


_made: Counter[str] = Counter()


def _new_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder for one test, named as pytest would, which reads the names of all that there are for each new one."""
    while True:
        path = factory.getbasetemp() / f"{name}{_made[name]}"
        _made[name] += 1
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            return path


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _new_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(autouse=True)
def _private_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the developer's own configuration, cache or home."""
    home = _new_folder(tmp_path_factory, "home")
    for name in PLACES:
        monkeypatch.setenv(name, str(home))
    # A demo that ran in this process sets it for itself.
    monkeypatch.delenv("OPENCLAW_STATE_DIR", raising=False)


@pytest.fixture(autouse=True)
def _a_patient_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who closes an engine finds its index closed, however busy the machine is; the app leaves the writer behind."""
    monkeypatch.setattr("memory_tui.engine.index._GOODBYE_SECONDS", LONG)


@pytest.fixture(autouse=True)
def _no_server_is_left_behind() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes; skips the test where this user may mount none."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=2000", "tmpfs", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing in it, which no variable leads away from."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "xdg"))
    return folder


@pytest.fixture
def write(home: Path) -> Callable[[object], Path]:
    """Write a configuration, as text or as data, where OpenClaw keeps it."""

    def go(content: object) -> Path:
        path = home / ".openclaw" / "openclaw.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return go


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command as a process of its own would: its exit status, and what it prints on either stream."""

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main.main([*words])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def printed(command: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Run a command that ends with `code`: what it prints, of one that fails on either stream."""

    def run(*words: str, code: int = 0) -> str:
        status, out, err = command(*words)
        assert status == code, err
        return out + err if code else out

    return run


def _shared(name: str) -> Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"the shared data folder {name!r} is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def oracle_data() -> Path:
    return oracles() / "oracle"


@pytest.fixture(scope="session")
def memorybank() -> Path:
    return _shared("memorybank")


@pytest.fixture(scope="session")
def judge(memorybank: Path) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(memorybank / "score.py")))


@pytest.fixture(scope="session")
def oracle_workspace(oracle_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace that the recorded answers are about, made afresh; treat it as read-only."""
    out = tmp_path_factory.mktemp("oracle") / "workspace"
    command = [sys.executable, str(oracle_data / "make_workspace.py"), "oracle", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


@pytest.fixture(scope="session")
def oracle_workspaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The workspaces of the records of OpenClaw 2026.9 by name, made afresh; treat them as read-only."""
    base, scripts = tmp_path_factory.mktemp("oracle-2026.9"), oracles() / "oracle-2026.9"
    made = {
        "oracle": ("make_workspace.py", "oracle", str(base / "oracle")),
        "zerovec": ("make_workspace.py", "zerovec", str(base / "zerovec")),
        "bench": ("make_workspace.py", "bench", str(base / "bench"), "--files", "1000"),
        "rules": ("make_workspace9.py", str(base / "rules")),
        "pins": ("make_workspace9.py", str(base / "pins"), "--pins"),
    }
    for script, *arguments in made.values():
        command = [sys.executable, "-B", str(scripts / script), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {name: base / name for name in made}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes for each core, because many tests wait for a child, a timer or a disk, and some for real hosts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * cores


ON_REQUEST = ("soak", "real_host", "local_model")
"""Marks of long runs, real programs and real models, which are for those who name them: pytest -m real_host."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for by its mark."""
    left_out = {name for name in ON_REQUEST if name not in config.option.markexpr}
    unasked = {item for item in items if any(mark.name in left_out for mark in item.iter_markers())}
    if unasked:
        config.hook.pytest_deselected(items=[*unasked])
        items[:] = [item for item in items if item not in unasked]
