"""Checks of the index and of the provider that fills it: is it whole, is it of these notes, does it find them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memory_tui.doctor.record import Check, Finding, failed, ok, skipped, warning
from memory_tui.errors import MemoryTuiError
from memory_tui.explain.wording import plural

if TYPE_CHECKING:
    from memory_tui.engine import Engine

_REINDEX = "Run memory-tui index."
_REBUILD = "Run memory-tui index --force; the notes are not touched."
_AGAIN = "Mend what the provider names; memory-tui provider --test asks it again."


def _whole(engine: Engine) -> Finding:
    problems = engine.verify()
    if problems:
        return failed("; ".join(problems[:3]), "Delete it and run memory-tui index: it is made anew from the notes.")
    return ok(f"{engine.plan.index.name} was read from end to end.")


def _fresh(engine: Engine) -> Finding:
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
        return warning(f"{said}: {'; '.join(left)}.", "memory-tui status names every one of them.")
    return ok(f"{said}.")


def _vectors(engine: Engine) -> Finding:
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
    return ok(f"All {status.chunks:,} chunks have a vector of {status.vector['dims']} dimensions.")


def _identity(engine: Engine) -> Finding:
    status = engine.status()
    if not status.model:
        return skipped("No provider has filled the index.")
    who = status.who
    if not who.fine:
        fix = _REINDEX if who.standing == "other model" else who.next_step or _AGAIN
        return warning(f"The vectors are of {status.provider}, {status.model}. {who.sentence}", fix)
    if status.freshness.rebuild:
        return warning(f"The index is made in another way: {'; '.join(status.freshness.rebuild)}.", _REINDEX)
    return ok(f"The vectors are of {status.provider}, {status.model}.")


def _remeasured(engine: Engine) -> Finding:
    found = engine.remeasured()
    if found is None:
        return skipped("There is no vector to compare with.")
    path, cosine = found
    if cosine < 0.99:
        return failed(
            f"A chunk of {path} embedded anew is {cosine:.3f} like its stored vector; it should be 1.",
            "The model has changed under its name. " + _REBUILD,
        )
    return ok(f"A chunk of {path} embedded anew is {cosine:.4f} like its stored vector.")


def _finds_itself(engine: Engine) -> Finding:
    sample = engine.sample()
    if sample is None:
        return skipped("There is no chunk to look for.")
    ref, text = sample
    words = " ".join(text.split()[:30])
    settings = engine.settings.update(
        {"query.minScore": 0.0, "query.hybrid.temporalDecay.enabled": False}, "the doctor"
    )
    trace = engine.rank(engine.gather(words[:400]), settings)
    place = next((at for at, hit in enumerate(trace.recalled, 1) if hit.chunk.path == ref.path), 0)
    if not place:
        return warning(
            f"The first words of {ref.path}:{ref.start_line} do not find that note.",
            f"memory-tui why '...' {ref.path}:{ref.start_line} tells the gate that stops it.",
        )
    return ok(f"The first words of {ref.path}:{ref.start_line} find it as number {place} ({trace.mode}).")


def _writer(engine: Engine) -> Finding:
    from memory_tui.index import lock

    holder = lock.holder(engine.plan.index)
    if holder is None or not lock.is_alive(holder):
        return ok("Nobody writes the index at the moment.")
    since = time.strftime("%H:%M:%S", time.localtime(holder.since))
    return ok(f"Process {holder.pid} writes the index since {since}; everybody can read it.")


def _provider(engine: Engine) -> Finding:
    if engine.plan.provider == "none":
        return skipped("No provider is asked for.")
    who = engine.who()
    if who.fine:
        return ok(f"{engine.plan.provider} ({engine.plan.provider_origin}): {who.sentence}")
    state = warning if who.answers or who.standing == "fallback starts" else failed
    return state(who.sentence, who.next_step or _AGAIN)


def _provider_call(engine: Engine) -> Finding:
    if engine.plan.provider == "none":
        return skipped("No provider is asked for.")
    began = time.perf_counter()
    probe = engine.embedding.try_out()
    if not probe.get("ok"):
        return failed(
            f"A text was not embedded: {probe.get('error') or 'no answer'}.",
            "memory-tui status tells the state of the provider and what to do.",
        )
    took = (time.perf_counter() - began) * 1000
    return ok(f"{probe['provider']} {probe['model']} embedded a text in {took:.0f} ms.")


def _theirs(engine: Engine) -> Finding:
    from memory_tui.index import compare

    config, roots = engine.plan.config, engine.plan.roots
    if config.kind != "openclaw":
        return skipped("The configuration is not OpenClaw's.")
    try:
        found = compare.compare_workspace(
            roots, compare.database(config), compare.wanted(config, engine.settings, roots)
        )
    except MemoryTuiError as error:
        return warning(error.message, error.next_step or "memory-tui compare-index tells more.")
    if found.state != "ok":
        return warning(f"OpenClaw's own index: {found.state}.", "memory-tui compare-index tells more.")
    return ok("OpenClaw's own index can be read; memory-tui compare-index tells what differs.")


CHECKS: tuple[Check, ...] = (
    Check("index-whole", "index", "The index file is whole", _whole),
    Check("fresh", "index", "The index is of the notes as they are", _fresh),
    Check("vectors", "index", "Every chunk has a vector", _vectors),
    Check("identity", "index", "The vectors are of the provider in use", _identity),
    Check("self-similarity", "index", "A stored vector is what its text gives today", _remeasured),
    Check("finds-itself", "index", "A note is found by its own words", _finds_itself),
    Check("writer", "index", "Who writes the index", _writer),
    Check("their-index", "index", "OpenClaw's own index can be read", _theirs),
    Check("provider", "provider", "The provider is usable", _provider),
    Check("provider-call", "provider", "The provider embeds a text", _provider_call),
)
