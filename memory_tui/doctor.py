"""The doctor checks machine, notes, index, provider, settings and OpenClaw: each check has evidence and one fix."""

from __future__ import annotations

import os
import queue
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import watchfiles
from msgspec import MsgspecError, Struct

from memory_tui.backends.lancedb import TableMissing
from memory_tui.config.openclaw_release import PLUGIN, SLOT, is_agents_memory
from memory_tui.config.places import expand
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.hosts import connection, openclaw
from memory_tui.hosts.connection import prove
from memory_tui.index import database
from memory_tui.workspace.roots import beside

DEADLINE = 20.0
"""Seconds after which a check that is still running has no answer."""

State = Literal["ok", "warning", "failed", "skipped", "no answer"]
Group = Literal["machine", "notes", "index", "provider", "settings"]


class CheckOutcome(Struct, frozen=True):
    """The outcome of one check: `evidence` is what was seen, `fix` the one thing to do, empty where nothing is."""

    state: State
    evidence: str
    fix: str = ""


class Check(Struct, frozen=True):
    """One question that is put to the machine or the memory; `key` names it for programs, `title` for people.

    It says something about an engine that it `concerns`.
    """

    key: str
    group: Group
    title: str
    run: Callable[[Engine], CheckOutcome]
    concerns: Callable[[Engine], bool] = lambda _: True


class Result(Struct, frozen=True):
    """What the check with the key `check` found, and how long it took in milliseconds."""

    check: str
    group: Group
    title: str
    state: State
    evidence: str
    fix: str
    milliseconds: float


ok = partial(CheckOutcome, "ok")
skipped = partial(CheckOutcome, "skipped")
"""Make the outcome of a question that does not arise."""
warning = partial(CheckOutcome, "warning")
"""Make the outcome of what works, and somebody should know of."""
failed = partial(CheckOutcome, "failed")


def examine(engine: Engine, checks: Sequence[Check], deadline: float = DEADLINE) -> Iterator[Result]:
    """Yield the result of every check as it comes; one that takes too long comes last, as `no answer`.

    Each check runs on a thread of its own, which is left behind when it hangs: closing the engine ends it.
    """
    done: queue.SimpleQueue[Result] = queue.SimpleQueue()
    for check in checks:
        threading.Thread(target=_run_check, args=(engine, check, done), name="doctor", daemon=True).start()
    running = {check.key: check for check in checks}
    # One deadline for all of them, as they run at the same time.
    end = time.monotonic() + deadline
    while running and (seconds := end - time.monotonic()) > 0:
        try:
            result = done.get(timeout=seconds)
        except queue.Empty:
            break
        del running[result.check]
        yield result
    step = "Run it again. If it is still slow, the provider or the disk hangs."
    for check in running.values():
        outcome = CheckOutcome("no answer", f"Still running after {deadline:g} s.", step)
        yield _result(check, outcome, 1000 * deadline)


def verdict(results: Sequence[Result]) -> int:
    """Return the exit code: 1 when something failed or gave no answer, else 0; warnings are no failure."""
    return int(any(result.state in ("failed", "no answer") for result in results))


def _run_check(engine: Engine, check: Check, done: queue.SimpleQueue[Result]) -> None:
    """Put the result of a check into `done`; whatever a check raises is a result too."""
    began = time.perf_counter()
    try:
        outcome = check.run(engine)
    except (IndexUnavailable, Cancelled) as error:
        outcome = skipped(error.message)
    except MemoryTuiError as error:
        outcome = failed(error.message, error.next_step)
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, not the end of the others
        outcome = failed(f"The check itself broke: {type(error).__name__}: {error}", "Please report it.")
    done.put(_result(check, outcome, round(1000 * (time.perf_counter() - began), 1)))


def _result(check: Check, outcome: CheckOutcome, milliseconds: float) -> Result:
    """Return the outcome of a check with what names the check."""
    asked = check.key, check.group, check.title
    return Result(*asked, outcome.state, outcome.evidence, fix=outcome.fix, milliseconds=milliseconds)


_SIGHT_SECONDS = 3.0
_PROOF_SECONDS = 15.0
_ALL = "Run memory-tui status to see each of them."
_REINDEX = "Run memory-tui index."
_AGAIN = "Repair what the provider reports, then run memory-tui provider --test."
_CONNECT = "Run memory-tui connect openclaw."


def _vec0(_: Engine) -> CheckOutcome:
    """Tell whether sqlite-vec can be loaded."""
    state = database.vec0()
    if not state.ready:
        return warning(f"sqlite-vec is not used: {state.detail}. numpy answers the same.", "Reinstall sqlite-vec.")
    return ok(f"sqlite-vec {state.detail} was loaded.")


def _index_folder(engine: Engine) -> CheckOutcome:
    """Tell whether the index can be written, and read by this user alone."""
    folder = next(folder for folder in engine.plan.index.parents if folder.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        return failed(f"{folder} cannot be written.", "Name another file with --index, or change its permissions.")
    index = engine.plan.index
    if index.exists() and os.name == "posix" and stat.S_IMODE(index.stat().st_mode) & 0o077:
        return warning(f"{index} can be read by others; it holds your notes.", f"chmod 600 {index}")
    return ok(f"{engine.plan.index.parent} can be written, and nobody else reads the index.")


def _sees_a_save(_: Engine) -> CheckOutcome:
    """Save a file beside nothing of the user's, and tell whether the watcher notices."""
    began = time.monotonic()
    reason = f"nothing was announced within {_SIGHT_SECONDS:.0f} s"
    with tempfile.TemporaryDirectory(prefix="memory-tui-doctor-") as folder:
        try:
            # Without changes it yields an empty set every 50 ms, so the file is written after the watch has begun.
            for changes in watchfiles.watch(folder, rust_timeout=50, yield_on_timeout=True, debounce=50):
                took = time.monotonic() - began
                if changes:
                    return ok(f"A file that was saved was noticed within {took * 1000:.0f} ms.")
                if took > _SIGHT_SECONDS:
                    break
                (Path(folder) / "note.md").write_text(f"saved after {took} s", "utf-8")
        except (OSError, RuntimeError) as error:
            # watchfiles says what its native part reports as RuntimeError, for instance that no watch is left to give.
            reason = f"no watch was given: {error}"
    step = "Leave sync.onSearch on; in a container, set WATCHFILES_FORCE_POLLING=true."
    return warning(f"A file was saved, and {reason}.", step)


def _whole(engine: Engine) -> CheckOutcome:
    """Read the index file from end to end."""
    problems = engine.search.problems()
    if problems:
        return failed("; ".join(problems[:3]), "Delete it and run memory-tui index: it is made anew from the notes.")
    return ok(f"{engine.plan.index.name} was read from end to end.")


def _fresh(engine: Engine) -> CheckOutcome:
    """Tell whether the index holds the notes as they are on disk."""
    status = engine.status()
    fresh = status.freshness
    pending = fresh.pending
    if not status.files:
        return failed("Nothing is indexed yet.", _REINDEX)
    if pending:
        count = plural(len(pending), "note")
        return warning(f"{count} not searchable as on disk, for instance {pending[0].path}.", _REINDEX)
    evidence = f"{fresh.fresh} of {fresh.total} notes are indexed as they are on disk"
    whys = {"failed": "cannot be read", "changed while read": "is being written", "missing root": "is not there"}
    if examples := [f"{fresh.of(state)[0].path} {why}" for state, why in whys.items() if fresh.of(state)]:
        return warning(f"{evidence}: {'; '.join(examples)}.", _ALL)
    return ok(f"{evidence}.")


def _vectors(engine: Engine) -> CheckOutcome:
    """Tell whether every chunk has a vector of the provider in use."""
    status = engine.status()
    who = status.who
    missing = status.chunks - status.embedded
    if status.requested_provider == "none" or not status.chunks:
        return skipped("No provider was asked for vectors.")
    evidence = f"{status.embedded:,} of {status.chunks:,} passages have a vector of {status.provider}, {status.model}."
    if not who.fine:
        fix = _REINDEX if who.standing == "other model" else who.next_step or _AGAIN
        return warning(f"{evidence} {who.sentence}", fix)
    if missing > 0 or status.freshness.rebuild:
        return warning(" ".join([evidence, *status.freshness.rebuild]), _REINDEX)
    return ok(evidence)


def _remeasured(engine: Engine) -> CheckOutcome:
    """Tell whether a chunk embedded anew gets the vector that is stored of it."""
    sample = engine.search.remeasured()
    if sample is None:
        return skipped("There is no vector to compare with.")
    path, cosine = sample
    if cosine < 0.99:
        step = "The model has changed under its name. Run memory-tui index --force; the notes are not touched."
        return failed(f"A passage of {path} embedded anew is {cosine:.3f} like its stored vector, not 1.", step)
    return ok(f"A passage of {path} embedded anew is {cosine:.4f} like its stored vector.")


def _provider(engine: Engine) -> CheckOutcome:
    """Have one text embedded by whoever answers."""
    plan = engine.plan
    if plan.provider == "none":
        return skipped(f"Words alone are searched: none ({plan.provider_origin}).")
    who = engine.providers.who()
    if not who.fine:
        # A fallback answers, or will once the index is made again: that works.
        state = warning if who.answers or who.standing == "fallback starts" else failed
        return state(who.sentence, who.next_step or _AGAIN)
    began = time.perf_counter()
    probe = engine.providers.chain.try_out()
    if not probe.get("ok"):
        return failed(f"{plan.provider}: a text was not embedded: {probe.get('error') or 'no answer'}.", _AGAIN)
    took = (time.perf_counter() - began) * 1000
    return ok(f"{probe['provider']} {probe['model']} ({plan.provider_origin}) embedded a text in {took:.0f} ms.")


def _workspace(engine: Engine) -> CheckOutcome:
    """Tell whether the folder of the notes can be read and written."""
    folder = engine.plan.roots.workspace
    if not os.access(folder, os.R_OK | os.X_OK):
        return failed(f"{folder} cannot be read.", "Change its permissions.")
    if engine.plan.options.read_only:
        return skipped(f"{folder} is only read, as asked.")
    if not os.access(folder, os.W_OK):
        return warning(f"{folder} cannot be written: notes can be searched and not edited.", "Change its permissions.")
    return ok(f"{folder}.")


def _curated(engine: Engine) -> CheckOutcome:
    """Tell whether there is one MEMORY.md, and how one that was removed comes back."""
    folder = engine.plan.roots.workspace
    files = [folder / name for name in ("MEMORY.md", "memory.md") if (folder / name).exists()]
    if len(files) == 2 and not files[0].samefile(files[1]):
        return warning("There is a MEMORY.md and a memory.md; some hosts read only one of them.", "Merge them.")
    # The whole folder is read as notes.
    if str(folder) in engine.plan.roots.extra:
        return ok("Every note of this folder is memory.")
    if not files:
        # The newest change of the file; without text after it, that removed the file.
        engine.notes.record()
        removed = engine.notes.curator.journal.edits("MEMORY.md", most=1)
        if removed and removed[0].after is None:
            back = f"memory-tui restore MEMORY.md --before {removed[0].id} brings it back."
            return warning("MEMORY.md was removed: a session starts without lasting facts.", back)
        return warning("There is no MEMORY.md: a session starts without lasting facts.", "Promote a line with p.")
    return ok(f"{files[0]}.")


def _all_read(engine: Engine) -> CheckOutcome:
    """Tell which notes cannot be read, are found in part, or are left out."""
    status = engine.status()
    aside = ""
    if no_memory := beside(engine.plan.roots):
        aside = f" {plural(len(no_memory), 'Markdown file')} here are no memory; memory-tui --whole yes reads them."
    if not status.freshness.total:
        step = "Write MEMORY.md or memory/YYYY-MM-DD.md, or name another workspace."
        return failed(f"There is no note in {engine.plan.roots.workspace}.{aside}", step)
    unreadable = [f"{note.path}: {note.detail}" for note in status.freshness.of("failed")]
    in_part = [f"{note.path}: {note.detail}" for note in status.in_part]
    left_out = [f"{note.path}: {note.reason}" for note in status.freshness.left_out if not note.expected]
    for state, notes, evidence, fix in (
        (failed, unreadable, "cannot be read", "Mend or move it."),
        (warning, in_part, "found in part", "memory-tui inbox converts notes."),
        (warning, left_out, "left out", "memory-tui why --file PATH shows the rule."),
    ):
        if notes:
            return state(f"{plural(len(notes), 'path')} {evidence}, for instance {notes[0]}.", f"{fix} {_ALL}")
    return ok(f"Every note could be read, and none is left out.{aside}")


def _configuration(engine: Engine) -> CheckOutcome:
    """Tell whether everything in the configuration is used as it is written."""
    config = engine.plan.config
    if config.path is None:
        return ok("No configuration; the defaults apply.")
    if config.problems:
        step = "Run memory-tui config to list every value with its origin."
        return warning(f"{plural(len(config.problems), 'value')} not used as written: {config.problems[0]}", step)
    return ok(f"{config.path} has no errors.")


def _agents(engine: Engine) -> CheckOutcome:
    """Ask whether the server of each connected host answers as the host starts it, by the profile of this memory."""
    if not (connections := connection.every()):
        return skipped("No agent is connected. memory-tui connect HOST connects one.")
    answers: list[str] = []
    for item in connections:
        if lost := connection.wired(item):
            return failed(f"{item.host}: {' '.join(lost)}", f"Run memory-tui connect {item.host} again.")
        try:
            proof = prove(item.start, _PROOF_SECONDS)
        except MemoryTuiError as error:
            return failed(f"{item.host}: {error.message}", error.next_step)
        answers.append(f"{item.host} answers in {proof.answer_ms:.0f} ms with profile {proof.profile}")
        here = engine.plan.settings.word("profile")
        if str(engine.plan.workspace) in item.start.words and proof.profile != here:
            step = f"Add --profile {proof.profile} to see what the agent gets."
            return warning(f"{item.host} gets answers by profile {proof.profile}, and this is profile {here}.", step)
    return ok(f"{'; '.join(answers)}.")


def _slot(engine: Engine) -> CheckOutcome:
    """Tell whether OpenClaw's memory slot has this program, and ranks as this one does."""
    config = engine.plan.config
    if config.kind != "openclaw":
        return skipped("The configuration is not OpenClaw's.")
    if not is_agents_memory(config):
        return skipped(f"OpenClaw's agent asks {config.value(SLOT)}, not memory-tui.")
    if (folder := _plugin_folder(engine)) is None:
        evidence = f"{SLOT} is memory-tui, but no folder in plugins.load.paths holds the plug-in"
        step = f"{_CONNECT} Or go back: openclaw config set {SLOT} memory-core"
        return failed(f"{evidence}: OpenClaw may not start.", step)
    command = openclaw.plugin_value(engine.plan, "entries", PLUGIN, "config", "command") or "memory-tui"
    if shutil.which(str(command)) is None:
        return failed(f"The plug-in starts {command}, which is not there: the agent's recalls fail.", _CONNECT)
    if changed := openclaw.outdated_plugin(folder):
        return warning(f"The plug-in in {folder} is of another version: {', '.join(changed)}.", _CONNECT)
    agent = engine.plan.with_profile("auto").word("profile")
    here = engine.plan.settings.word("profile")
    if agent != here:
        step = "Leave --profile out to see what the agent gets."
        return warning(f"The agent recalls by profile {agent}; what you see here is ranked by {here}.", step)
    return ok(f"memory-tui is the agent's memory; the agent and this program rank by profile {agent}.")


def _plugin_folder(engine: Engine) -> Path | None:
    """Return the folder of our plug-in among those that OpenClaw's configuration names; None where none holds it."""
    listed = openclaw.plugin_value(engine.plan, "load", "paths")
    for item in listed if isinstance(listed, list) else ():
        with suppress(OSError, MsgspecError):
            folder = expand(str(item.value))
            if msgspec.json.decode((folder / "openclaw.plugin.json").read_bytes(), type=dict).get("id") == PLUGIN:
                return folder
    return None


def _answers(engine: Engine) -> CheckOutcome:
    """Ask QMD a question. Raises where it fails, which is the outcome then."""
    engine.backend.client.ask("memory", 1)
    # An earlier failure, after which the built-in index answered, is over.
    engine.backend.recovered()
    return ok("A question was asked and answered.")


def _recalls_entries(engine: Engine) -> bool:
    """Return whether entries of LanceDB are the agent's memory, so that the check of their table says something."""
    return engine.plan.recalls_entries


def _table(engine: Engine) -> CheckOutcome:
    """Tell whether the long-term memories can be read."""
    try:
        count = len(engine.memories.table().entries())
    except TableMissing as missing:
        return warning(missing.message, missing.next_step)
    return ok(f"{plural(count, 'entry')} in {engine.memories.label}.")


CHECKS: tuple[Check, ...] = (
    Check("vec0", "machine", "sqlite-vec works", _vec0),
    Check("watcher", "machine", "A saved file is noticed", _sees_a_save),
    Check("index-folder", "machine", "The index can be written, by you alone", _index_folder),
    Check("workspace", "notes", "The workspace can be read and written", _workspace),
    Check("curated", "notes", "There is one MEMORY.md", _curated),
    Check("readable", "notes", "Every note can be read", _all_read),
    Check("index-whole", "index", "The index file is whole", _whole),
    Check("fresh", "index", "The index matches the notes on disk", _fresh),
    Check("vectors", "index", "Every passage has a vector of the provider in use", _vectors),
    Check("self-similarity", "index", "A stored vector matches a new one of its text", _remeasured),
    Check("provider", "provider", "The provider embeds a text", _provider),
    Check("configuration", "settings", "The configuration has no errors", _configuration),
    Check("agents", "settings", "Connected agents get answers", _agents),
    Check("openclaw-slot", "settings", "OpenClaw's agent recalls through memory-tui", _slot),
    Check("qmd-answers", "settings", "QMD answers", _answers, lambda engine: engine.backend.is_qmd),
    Check("ltm-table", "settings", "The table of the long-term memories can be read", _table, _recalls_entries),
)


def checks_of(engine: Engine) -> tuple[Check, ...]:
    """Return the checks that say something about `engine`."""
    return tuple(check for check in CHECKS if check.concerns(engine))
