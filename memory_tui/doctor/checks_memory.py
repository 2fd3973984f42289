"""Checks of the memory. They examine notes, index, provider and settings."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import stat
import time
from typing import TYPE_CHECKING

from memory_tui import profiles
from memory_tui.doctor.check import Check, CheckOutcome, failed, ok, skipped, warning
from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.search.formulas import candidate_limit

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

_PROOF_SECONDS = 15.0
_REINDEX = "Run memory-tui index."
_REBUILD = "Run memory-tui index --force; the notes are not touched."
_AGAIN = "Repair what the provider reports, then run memory-tui provider --test."


def _whole(engine: Engine) -> CheckOutcome:
    problems = engine.search.problems()
    if problems:
        return failed("; ".join(problems[:3]), "Delete it and run memory-tui index: it is made anew from the notes.")
    return ok(f"{engine.plan.index.name} was read from end to end.")


def _fresh(engine: Engine) -> CheckOutcome:
    status = engine.status()
    fresh = status.freshness
    pending = fresh.pending
    if not status.files:
        return failed("Nothing is indexed yet.", _REINDEX)
    if pending:
        return warning(
            f"{plural(len(pending), 'note')} not searchable as on disk, for instance {pending[0].path}.", _REINDEX
        )
    said = f"{fresh.fresh} of {fresh.total} notes are indexed as they are on disk"
    other = [(fresh.failed, "cannot be read"), (fresh.unsettled, "is being written"), (fresh.missing, "is not there")]
    if left := [f"{notes[0].path} {why}" for notes, why in other if notes]:
        return warning(f"{said}: {'; '.join(left)}.", "Run memory-tui status to see each of them.")
    return ok(f"{said}.")


def _whole_notes(engine: Engine) -> CheckOutcome:
    found = engine.status().in_part
    if not found:
        return ok("No note holds bytes or lines that could not be indexed.")
    more = f", and {plural(len(found) - 1, 'more note')}" if len(found) > 1 else ""
    return warning(
        f"{found[0].path}: {found[0].detail}{more}.",
        "Run memory-tui status to see each; memory-tui inbox converts notes.",
    )


def _vectors(engine: Engine) -> CheckOutcome:
    status = engine.status()
    if status.requested_provider == "none":
        return skipped("Only words are searched, as asked.")
    missing = status.chunks - status.embedded
    if missing > 0:
        who = status.who
        fix = _REINDEX if who.fine else who.next_step or _AGAIN
        return warning(
            f"{plural(missing, 'chunk')} of {status.chunks:,} have no vector: meaning cannot find them.", fix
        )
    return ok(f"All {status.chunks:,} chunks have a vector of {status.vector.dims} dimensions.")


def _identity(engine: Engine) -> CheckOutcome:
    status = engine.status()
    if not status.model:
        return skipped("No provider has filled the index.")
    who = status.who
    if not who.fine:
        fix = _REINDEX if who.standing == "other model" else who.next_step or _AGAIN
        return warning(f"The vectors are of {status.provider}, {status.model}. {who.sentence}", fix)
    if status.freshness.rebuild:
        return warning(f"Index settings changed: {'; '.join(status.freshness.rebuild)}.", _REINDEX)
    return ok(f"The vectors are of {status.provider}, {status.model}.")


def _remeasured(engine: Engine) -> CheckOutcome:
    found = engine.search.remeasured()
    if found is None:
        return skipped("There is no vector to compare with.")
    path, cosine = found
    if cosine < 0.99:
        return failed(
            f"A chunk of {path} embedded anew is {cosine:.3f} like its stored vector; it should be 1.",
            "The model has changed under its name. " + _REBUILD,
        )
    return ok(f"A chunk of {path} embedded anew is {cosine:.4f} like its stored vector.")


def _finds_itself(engine: Engine) -> CheckOutcome:
    sample = engine.search.sample()
    if sample is None:
        return skipped("There is no chunk to look for.")
    ref, text = sample
    words = " ".join(text.split()[:30])
    settings = engine.plan.settings.update(
        {"query.minScore": 0.0, "query.hybrid.temporalDecay.enabled": False}, "the doctor"
    )
    trace = engine.search.rank(engine.search.gather(words[:400]), settings)
    place = next((at for at, hit in enumerate(trace.recalled, 1) if hit.chunk.path == ref.path), 0)
    if not place:
        return warning(
            f"The first words of {ref.path}:{ref.start_line} do not find that note.",
            f"memory-tui why '...' {ref.path}:{ref.start_line} names the gate that stops it.",
        )
    return ok(f"The first words of {ref.path}:{ref.start_line} find it as number {place} ({trace.mode}).")


def _writer(engine: Engine) -> CheckOutcome:
    from memory_tui import locks

    holder = locks.holder(engine.plan.index)
    if holder is None or not locks.is_alive(holder):
        return ok("No process writes the index now.")
    since = time.strftime("%H:%M:%S", time.localtime(holder.since))
    return ok(f"Process {holder.pid} writes the index since {since}; any process can read it.")


def _provider(engine: Engine) -> CheckOutcome:
    if engine.plan.provider == "none":
        return skipped(f"Words alone are searched: none ({engine.plan.provider_origin}).")
    who = engine.providers.who()
    if who.fine:
        return ok(f"{engine.plan.provider} ({engine.plan.provider_origin}): {who.sentence}")
    state = warning if who.answers or who.standing == "fallback starts" else failed
    return state(who.sentence, who.next_step or _AGAIN)


def _provider_call(engine: Engine) -> CheckOutcome:
    if engine.plan.provider == "none":
        return skipped("No provider is configured.")
    began = time.perf_counter()
    probe = engine.providers.chain.try_out()
    if not probe.get("ok"):
        return failed(
            f"A text was not embedded: {probe.get('error') or 'no answer'}.",
            "Run memory-tui status to see the provider's state and the next step.",
        )
    took = (time.perf_counter() - began) * 1000
    return ok(f"{probe['provider']} {probe['model']} embedded a text in {took:.0f} ms.")


def _theirs(engine: Engine) -> CheckOutcome:
    from memory_tui.openclaw import compare

    config, roots = engine.plan.config, engine.plan.roots
    if config.kind != "openclaw":
        return skipped("The configuration is not OpenClaw's.")
    try:
        found = compare.compare_workspace(
            roots, compare.database(config), compare.wanted(config, engine.plan.settings, roots)
        )
    except MemoryTuiError as error:
        return warning(error.message, error.next_step or "Run memory-tui openclaw compare-index for details.")
    if found.state != "ok":
        return warning(f"OpenClaw's own index: {found.state}.", "Run memory-tui openclaw compare-index for details.")
    return ok("OpenClaw's own index can be read; memory-tui openclaw compare-index shows the differences.")


def _trust(engine: Engine) -> CheckOutcome:
    found = engine.notes.trust()
    if found is None or not found.ledger:
        return skipped("OpenClaw keeps no ledger of these notes.")
    if found.problem:
        return warning(f"Trust is unknown: {found.problem}", found.next_step)
    bad = [file for file in found.files if file.state in ("untrusted", "edited", "ignored", "unknown")]
    if bad or found.remarks:
        said = [*found.remarks, *(f"{file.path}: {file.words}." for file in bad[:3])]
        more = f" And {len(bad) - 3} more." if len(bad) > 3 else ""
        return warning(" ".join(said) + more, "Run memory-tui openclaw trust to see every note, and how to repair one.")
    return ok(f"{plural(len(found.files), 'note')}, none edited since the agent wrote it and none untrusted.")


INDEX_CHECKS: tuple[Check, ...] = (
    Check("index-whole", "index", "The index file is whole", _whole),
    Check("fresh", "index", "The index matches the notes on disk", _fresh),
    Check("whole-notes", "index", "All that is in the notes can be found", _whole_notes),
    Check("vectors", "index", "Every chunk has a vector", _vectors),
    Check("identity", "index", "The vectors come from the provider in use", _identity),
    Check("self-similarity", "index", "A stored vector matches a new one of its text", _remeasured),
    Check("finds-itself", "index", "A search for a note's own words finds it", _finds_itself),
    Check("writer", "index", "The process that writes the index", _writer),
    Check("their-index", "index", "OpenClaw's own index can be read", _theirs),
    Check("trust", "notes", "OpenClaw trusts the notes", _trust),
    Check("provider", "provider", "The provider is usable", _provider),
    Check("provider-call", "provider", "The provider embeds a text", _provider_call),
)

_DATED = re.compile(r"(?:^|/)(\d{4}-\d{2}-\d{2})(?:-[^/]*)?\.md$")


def _workspace(engine: Engine) -> CheckOutcome:
    folder = engine.plan.roots.workspace
    if not os.access(folder, os.R_OK | os.X_OK):
        return failed(f"{folder} cannot be read.", "Change its permissions.")
    if engine.plan.read_only:
        return skipped(f"{folder} is only read, as asked.")
    if not os.access(folder, os.W_OK):
        return warning(f"{folder} cannot be written: notes can be searched and not edited.", "Change its permissions.")
    return ok(f"{folder} can be read and written.")


def _there(engine: Engine) -> CheckOutcome:
    rows = [row for row in engine.notes.files() if row.state != "left out"]
    if not rows:
        return failed(
            f"There is no note in {engine.plan.roots.workspace}.",
            "Write MEMORY.md or memory/YYYY-MM-DD.md, or name another workspace.",
        )
    return ok(f"{plural(len(rows), 'note')}, {plural(sum(row.chunks for row in rows), 'chunk')}.")


def _curated(engine: Engine) -> CheckOutcome:
    names = [path for path in ("MEMORY.md", "memory.md") if (engine.plan.roots.workspace / path).exists()]
    if len(names) == 2 and not (engine.plan.roots.workspace / names[0]).samefile(
        engine.plan.roots.workspace / names[1]
    ):
        return warning("There is a MEMORY.md and a memory.md; some hosts read only one of them.", "Merge them.")
    if not names:
        return warning("There is no MEMORY.md: a session starts without lasting facts.", "Promote a line with p.")
    return ok(f"{names[0]} is there.")


def _all_read(engine: Engine) -> CheckOutcome:
    status = engine.status()
    bad, left = status.freshness.failed, status.freshness.left_out
    if bad:
        return failed(
            f"{plural(len(bad), 'note')} cannot be read, for instance {bad[0].path}: {bad[0].detail}",
            "Mend or move it; memory-tui status lists them all.",
        )
    if left:
        return warning(
            f"{plural(len(left), 'path')} left out, for instance {left[0].path}: {left[0].reason}",
            "Run memory-tui why --file PATH to see the rule.",
        )
    return ok("Every note could be read, and nothing is left out.")


def _roots(engine: Engine) -> CheckOutcome:
    missing = [item.path for item in engine.status().freshness.left_out if item.rule == "missing root"]
    if missing:
        return warning(f"Not there: {', '.join(missing[:3])}.", "Mount it, or take it out of extraPaths or sources.")
    return ok(f"Every root is there ({1 + len(engine.plan.roots.extra)}).")


def _dates(engine: Engine) -> CheckOutcome:
    tomorrow = (dt.datetime.fromtimestamp(engine.plan.clock(), dt.UTC) + dt.timedelta(days=1)).date()
    impossible, future = [], []
    for row in engine.notes.files():
        found = _DATED.search(row.path)
        if not found:
            continue
        try:
            day = dt.date.fromisoformat(found[1])
        except ValueError:
            impossible.append(row.path)
            continue
        if day > tomorrow:
            future.append(row.path)
    if impossible:
        return warning(f"Invalid date: {', '.join(impossible[:3])}. The note never fades.", "Rename it.")
    if future:
        return warning(f"Dated in the future: {', '.join(future[:3])}. It counts as new until then.", "Rename it.")
    return ok("Every date in a name is a real day in the past or today.")


NOTE_CHECKS: tuple[Check, ...] = (
    Check("workspace", "notes", "The workspace can be read and written", _workspace),
    Check("notes", "notes", "There are notes", _there),
    Check("curated", "notes", "There is one MEMORY.md", _curated),
    Check("readable", "notes", "Every note can be read", _all_read),
    Check("roots", "notes", "Every root is there", _roots),
    Check("dates", "notes", "Dates in names are real", _dates),
)

_DECAY = "query.hybrid.temporalDecay"


def _configuration(engine: Engine) -> CheckOutcome:
    config = engine.plan.config
    if config.path is None:
        return ok("No configuration; the defaults apply.")
    if config.found:
        return warning(
            f"{plural(len(config.found), 'value')} not used as written: {config.found[0]}",
            "Run memory-tui config to list every value with its origin.",
        )
    return ok(f"{config.path} has no errors.")


def _secrets(engine: Engine) -> CheckOutcome:
    config = engine.plan.config
    keys = [entry.node.value for path, entry in config.entries.items() if path.endswith(".apiKey")]
    if config.path is None or not any(isinstance(key, str) for key in keys):
        return skipped("No key is written in a configuration.")
    if os.name == "posix" and stat.S_IMODE(config.path.stat().st_mode) & 0o077:
        return warning(f"{config.path} holds a key and can be read by others.", f"chmod 600 {config.path}")
    return ok("The file with the key is readable for you alone.")


def _keyword_gate(engine: Engine) -> CheckOutcome:
    settings = engine.plan.settings
    rules, floor = profiles.get(settings.word("profile")), settings.number("query.minScore")
    weight = settings.number("query.hybrid.textWeight")
    if rules.missing_side != "zero" or not settings.on("query.hybrid.enabled"):
        return skipped("This profile scores every hit by meaning and by words.")
    if not engine.providers.who().answers:
        return skipped("Words alone answer now, so their score counts whole.")
    if rules.rescues:
        return ok(f"A hit by words alone below minScore {floor:g} follows those over it.")
    if weight <= floor:
        relaxed = " unless nothing else passes" if rules.relaxed_floor else ""
        return warning(
            f"A hit by words alone scores at most {weight:g}, and minScore is {floor:g}: it is never "
            f"recalled{relaxed}.",
            "Set minScore below textWeight, or try the profile recommended.",
        )
    return ok(f"A hit by words alone can score {weight:g}, over minScore {floor:g}.")


def _forgetting(engine: Engine) -> CheckOutcome:
    settings = engine.plan.settings
    rules, floor = profiles.get(settings.word("profile")), settings.number("query.minScore")
    if not settings.on(f"{_DECAY}.enabled") or rules.age != "multiply":
        return ok("No note is lost by age alone.")
    if floor <= 0:
        return ok("Age lowers scores, and no minScore cuts them off.")
    half = settings.number(f"{_DECAY}.halfLifeDays")
    days = half * math.log2(1 / floor)
    dated = sum(row.day is not None for row in engine.notes.files())
    perfect = "a perfect hit without annotations" if "importance" in rules.terms else "a perfect hit"
    lower = "Lower minScore" if f"{_DECAY}.halfLifeDays" in rules.fixed else "Raise the half-life or lower minScore"
    return warning(
        f"With a half-life of {half:g} days even {perfect} is below minScore {floor:g} after "
        f"{days:.0f} days; {plural(dated, 'note')} carry a date.",
        f"{lower}; memory-tui why shows what that brings.",
    )


def _kept_fresh(engine: Engine) -> CheckOutcome:
    settings = engine.plan.settings
    on = [name for name in ("sync.watch", "sync.onSearch", "sync.onSessionStart") if settings.on(name)]
    if not on:
        return warning(
            "Nothing brings the index up to date by itself: watch, onSearch and onSessionStart are off.",
            "Switch one of them on.",
        )
    return ok(f"{', '.join(on)} keep the index fresh.")


def _weights(engine: Engine) -> CheckOutcome:
    settings = engine.plan.settings
    vector, text = settings.number("query.hybrid.vectorWeight"), settings.number("query.hybrid.textWeight")
    if vector == text == 0:
        return warning("Both weights are 0; 0.7 and 0.3 are used.", "Set one of them.")
    if abs(vector + text - 1) > 1e-6:
        return warning(
            f"The weights {vector:g} and {text:g} do not add up to 1, so they are scaled.",
            "Set weights that add up to 1.",
        )
    return ok(f"Meaning counts {vector:g}, words count {text:g}.")


def _results(engine: Engine) -> CheckOutcome:
    settings = engine.plan.settings
    results = settings.whole("query.maxResults")
    candidates = candidate_limit(
        results,
        settings.whole("query.hybrid.candidateMultiplier"),
        profiles.get(settings.word("profile")).fewest_candidates,
    )
    if results > candidates:
        return warning(
            f"{results} results are set, but each side proposes only {candidates} candidates.",
            f"Set query.maxResults to {candidates} or less.",
        )
    return ok(f"{plural(results, 'result')} of up to {candidates} candidates a side.")


def _sessions(engine: Engine) -> CheckOutcome:
    config = engine.plan.config
    asked = config.value("sources")
    if not isinstance(asked, tuple) or "sessions" not in asked:
        return skipped("Transcripts are not configured.")
    if config.value("experimental.sessionMemory") is not True:
        return warning(
            "Transcripts are among the sources, but experimental.sessionMemory is off: nothing is searched there.",
            "Set experimental.sessionMemory to true.",
        )
    return ok("Transcripts are searched.")


def _agents(engine: Engine) -> CheckOutcome:
    """Whether the server of each connected host answers as the host starts it, by the profile of this memory."""
    from memory_tui.hosts import connection
    from memory_tui.hosts.proof import prove, question_of

    made = connection.every()
    if not made:
        return skipped("No agent is connected. memory-tui connect HOST connects one.")
    told: list[str] = []
    for one in made:
        if lost := connection.wired(one):
            return failed(f"{one.host}: {' '.join(lost)}", f"Run memory-tui connect {one.host} again.")
        try:
            proof = prove(one.start, question_of(one.start), _PROOF_SECONDS)
        except MemoryTuiError as error:
            return failed(f"{one.host}: {error.message}", error.next_step)
        told.append(f"{one.host} answers in {proof.answer_ms:.0f} ms with profile {proof.profile}")
        here = engine.plan.settings.word("profile")
        if str(engine.plan.workspace) in one.start.words and proof.profile != here:
            return warning(
                f"{one.host} gets answers by profile {proof.profile}, and this is profile {here}.",
                f"Add --profile {proof.profile} to see what the agent gets.",
            )
    return ok(f"{'; '.join(told)}.")


SETTING_CHECKS: tuple[Check, ...] = (
    Check("configuration", "settings", "The configuration has no errors", _configuration),
    Check("key-file", "settings", "Keys are readable for you alone", _secrets),
    Check("keyword-gate", "settings", "A hit by words alone can be recalled", _keyword_gate),
    Check("forgetting", "settings", "Old notes can be recalled", _forgetting),
    Check("kept-fresh", "settings", "Something keeps the index fresh", _kept_fresh),
    Check("weights", "settings", "The weights make sense", _weights),
    Check("results", "settings", "As many candidates as results", _results),
    Check("sessions", "settings", "Transcripts are searched where asked", _sessions),
    Check("agents", "settings", "Connected agents get answers", _agents),
)
