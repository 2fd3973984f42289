"""Checkers of what is said of logged recalls: the log as it lies on disk, and the question asked anew, decide."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import SettingError
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.plan import Options
from memory_tui.recalls import recall_log, rerun
from memory_tui.recalls.rerun import Rerun
from memory_tui.search.rank import rank
from memory_tui.search.trace import Trace
from memory_tui.settings import TUNE_KEYS, Settings
from tests.harness.claims import NOW, STILL, checks

NOTHING = "nothing holds these words"
KINDS = set(get_args(rerun.RecallClaim))
Place = tuple[str, int, int]


@dataclass
class RecallCase:
    """One logged recall, replayed over a memory; `raw` is its line in the log."""

    engine: Engine
    found: Rerun
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def delivered(self) -> list[Place]:
        return [(hit["path"], hit["start_line"], hit["end_line"]) for hit in self.raw["hits"]]

    @property
    def ranks(self) -> list[int]:
        """The place of each delivered hit in the ranking; in an older log, and of QMD, that in which it went out."""
        of_qmd = self.raw["backend"] == "qmd"
        return [place if of_qmd else hit["rank"] or place for place, hit in enumerate(self.raw["hits"], 1)]

    def settings(self, logged: dict[str, Any]) -> Settings:
        found = self.engine.plan.settings
        for key in TUNE_KEYS:
            if key in logged:
                try:
                    found = found.set(key, logged[key], "harness")
                except SettingError:
                    continue
        return found

    def ranked(self, now: float | None, logged: dict[str, Any]) -> Trace:
        """The question at a clock under knobs."""
        more = {} if now is None else {"now": now}
        evidence = self.engine.search.gather(self.raw["query"], by_words=self.raw["by_words"], **more)
        return rank(evidence, self.settings(logged))

    def asked(self, now: float | None, logged: dict[str, Any]) -> list[tuple[Place, float]]:
        """Its hits and scores."""
        hits = self.ranked(now, logged).recalled
        return [((hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line), hit.score) for hit in hits]

    @cached_property
    def then(self) -> list[tuple[Place, float]]:
        return self.asked(self.raw["now"] or self.raw["at"], self.raw["settings"])

    @cached_property
    def aged(self) -> list[tuple[Place, float]]:
        return self.asked(None, self.raw["settings"])

    @cached_property
    def now(self) -> list[tuple[Place, float]]:
        return self.asked(None, self.raw["requested"])

    def rebuilds(self) -> bool:
        """Whether the question asked at the logged clock under the logged knobs gives what was delivered."""
        found = self.then
        if len(found) != (self.raw["ranked"] or len(self.delivered)):
            return False
        if self.raw["ranked"] and not self.delivered:
            trace = self.found.trace
            state = {"provider": trace.provider, "model": trace.model, "mode": trace.mode, "index": trace.uuid}
            state = {name: found for name, found in state.items() if self.raw[name]}
            return {**state, "generation": trace.generation}.items() <= self.raw.items()
        scores = [hit["score"] for hit in self.raw["hits"]]
        behind = self.behind
        return all(
            at == wanted and abs(score - logged) < 1e-9
            for place, wanted, logged in zip(self.ranks, self.delivered, scores, strict=True)
            for at, score in [found[place - 1] if place <= len(found) else behind[place]]
        )

    @cached_property
    def behind(self) -> dict[int, tuple[Place, float]]:
        """What ranked behind the limit then, by its place."""
        evidence = self.engine.search.gather(
            self.raw["query"], by_words=self.raw["by_words"], now=self.raw["now"] or self.raw["at"]
        )
        lost = [
            hit for hit in rank(evidence, self.settings(self.raw["settings"])).lost if hasattr(hit.verdict, "place")
        ]
        return {
            hit.verdict.place: ((hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line), hit.score) for hit in lost
        }


@checks(rerun.Rebuilt)
def _rebuilt(_: rerun.Rebuilt, case: RecallCase) -> None:
    assert case.rebuilds()


@checks(rerun.NotRebuilt)
def _not_rebuilt(claim: rerun.NotRebuilt, case: RecallCase) -> None:
    raw = case.raw
    assert raw["backend"] == "qmd" or not case.rebuilds()
    assert (claim.obstacle == "of QMD") == (raw["backend"] == "qmd")
    with case.engine.search.reader() as store:
        identity, uuid, generation = store.identity(), store.uuid(), store.generation()
    vectors = f"{identity.provider} {identity.model}" if identity else "none fts-only"
    facts: dict[rerun.Obstacle, bool] = {
        "of QMD": (claim.then, claim.now) == ("", ""),
        "partial": "***" in raw["query"] or raw["query"].endswith("…"),
        "not logged": not all(raw[name] for name in ("provider", "mode", "generation", "settings")),
        "other vectors": claim.then == f"{raw['provider']} {raw['model']}" != vectors == claim.now,
        "other mode": claim.then == raw["mode"] != claim.now == case.found.trace.mode,
        "refused knob": claim.then.split(" ")[1] == str(raw["settings"].get(claim.then.split(" ")[0]))
        if claim.obstacle == "refused knob"
        else False,
        "new index": claim.then == raw["index"] != uuid == claim.now,
        "newer notes": claim.then == str(raw["generation"]) != str(generation) == claim.now,
        "no clock": not raw["now"],
        "arithmetic": True,
    }
    assert facts[claim.obstacle], claim


@checks(rerun.DeliveredFewer)
def _fewer(claim: rerun.DeliveredFewer, case: RecallCase) -> None:
    hits = {place for place in case.ranks if place <= case.raw["ranked"]}
    assert (claim.delivered, claim.ranked) == (len(hits), case.raw["ranked"])
    assert claim.delivered < claim.ranked
    assert claim.most_characters == case.raw["most_characters"]
    assert claim.pieces == len(case.raw["hits"])
    assert claim.beyond == len(set(case.ranks) - hits)


@checks(rerun.AnswersNow)
def _now(claim: rerun.AnswersNow, case: RecallCase) -> None:
    now, then = ([place for place, _ in one] for one in (case.now, case.then))
    limit = case.raw["ranked"]
    came = {hit: rank for hit, rank in zip(case.delivered, case.ranks, strict=True) if rank <= (limit or rank)}
    known = {hit: place for place, hit in enumerate(then, 1)} if case.rebuilds() and not claim.after_qmd else {}
    places = {hit: place for place, hit in enumerate(now, 1)}
    assert claim.after_qmd == (case.raw["backend"] == "qmd")
    kept = all(places.get(hit) == rank for hit, rank in came.items())
    as_before = kept and all(known.get(hit) == place for hit, place in places.items() if hit not in came)
    level = case.ranked(None, case.raw["requested"]).level
    nearest = case.raw["level"] == NOTHING and case.delivered
    assert claim.kept_back == bool(level and level.level == NOTHING and now and not nearest)
    assert claim.same == (as_before and bool(case.delivered) == bool(now and not claim.kept_back))
    assert (claim.then, claim.kept) == (len(came), len(came.keys() & places.keys()))
    assert claim.others == len(places.keys() - came.keys())
    moved = [set(one.causes) for one in case.found.changes if one.place_then != one.place_now]
    assert set(claim.causes) == (set.intersection(*moved) if moved else set())


@checks(rerun.LevelNow)
def _level(claim: rerun.LevelNow, case: RecallCase) -> None:
    trace = case.ranked(None, case.raw["requested"])
    told = trace.level.level if case.now and trace.level is not None else ""
    assert (claim.then, claim.now) == (case.raw["level"], told)
    assert claim.then or claim.now


@checks(rerun.DeliveredAs)
def _delivered(claim: rerun.DeliveredAs, case: RecallCase) -> None:
    places = [
        number
        for number, (path, first, last) in enumerate(case.delivered, 1)
        if path == claim.path and (claim.line is None or first <= claim.line <= last)
    ]
    assert claim.place == (places[0] if places else None)
    assert claim.cut == bool(places and case.raw["hits"][places[0] - 1]["cut"])
    assert claim.rank == (case.raw["hits"][places[0] - 1]["rank"] if places else 0)


@checks(rerun.GotThen)
def _got(claim: rerun.GotThen, case: RecallCase) -> None:
    assert claim.client == case.raw["client"]
    assert claim.hits == len(case.delivered)
    assert claim.masked == ("***" in case.raw["query"])


@checks(rerun.HitChange)
def _change(claim: rerun.HitChange, case: RecallCase) -> None:
    key = claim.path, claim.start_line, claim.end_line

    def place(hits: list[Any]) -> int | None:
        return next((number for number, (one, _) in enumerate(hits, 1) if one == key), None)

    steps = [case.then, case.aged, case.now]
    came = next((number for number, one in enumerate(case.delivered) if one == key), None)
    logged = None if came is None or case.ranks[came] > (case.raw["ranked"] or len(case.then)) else case.ranks[came]
    assert (claim.place_then, claim.place_now) == (logged, place(case.now))
    assert claim.score_now == dict(case.now).get(key)
    of_qmd = case.raw["backend"] == "qmd"
    assert claim.score_then == (case.raw["hits"][came]["score"] if logged and not of_qmd else None)
    assert of_qmd or "backend" not in claim.causes
    places = [logged, *map(place, steps)]
    moved = [was != then for was, then in itertools.pairwise(places)]
    assert moved == [
        bool({"length", "notes", "index", "not logged", "backend"} & set(claim.causes)),
        "clock" in claim.causes,
        "knobs" in claim.causes,
    ]
    whole = all(case.raw[name] for name in ("provider", "mode", "generation", "settings"))
    assert whole or "notes" not in claim.causes
    if "not logged" in claim.causes and whole:
        assert logged is None
        assert not case.rebuilds()
        assert case.raw["ranked"] > len([rank for rank in case.ranks if rank <= case.raw["ranked"]])
    if "length" in claim.causes:
        assert case.rebuilds()
        assert logged is None


# --- the memories that produce them --------------------------------------------------------------------------------


def made(place: Path) -> Iterator[tuple[rerun.RecallClaim, RecallCase]]:
    """Everything that is said of a recall of which part went out, then of it under other knobs, notes and clocks."""
    folder = place / "notes"
    (folder / "memory").mkdir(parents=True)
    for day in range(1, 9):
        words = " ".join(f"word{day}{n}" for n in range(day * 4))
        (folder / "memory" / f"2026-10-{day:02}.md").write_text(f"omada router {words}\n")
    knobs = {"profile": "openclaw-2026.3", "query.minScore": "0.02", "query.hybrid.temporalDecay.enabled": "true"}

    def options(name: str = "index", provider: str = "scripted", now: float = NOW, **changes: str) -> Options:
        chosen = {**dict(STILL), **knobs, **changes}
        index = str(place / f"{name}.sqlite")
        return Options(workspace=str(folder), index=index, provider=provider, now=now, changes=tuple(chosen.items()))

    with Engine.open(options()) as engine:
        engine.index.sync()
    served = ServedMemory(lambda: Engine.open(options()), ServerOptions(log=True, max_injected_chars=200))
    served.search({"query": "omada router"}, "", "a client", Stop())
    served.search({"query": "router password: hunter2hunter2X9"}, "", "", Stop())
    served.close()
    yield from _replayed(folder, options())
    yield from _replayed(folder, options(now=NOW + 60 * 86_400))
    yield from _replayed(folder, options(**{"query.minScore": "0.97"}))
    yield from _replayed(folder, options("other", "none"))
    yield from _replayed(folder, options("fourth"))
    yield from _replayed(folder, options("third", "builtin"))
    levels = ServedMemory(lambda: Engine.open(options(profile="recommended")), ServerOptions(log=True))
    levels.search({"query": "omada router"}, "", "a client", Stop())
    levels.search({"query": "aardvark"}, "", "a client", Stop())
    levels.close()
    yield from _replayed(folder, options(profile="recommended"))
    (folder / "memory" / "2026-11-19.md").write_text("omada router omada router\n")
    yield from _replayed(folder, options())


def _replayed(folder: Path, options: Options) -> Iterator[tuple[rerun.RecallClaim, RecallCase]]:
    place = recall_log.recall_log_path(folder)
    entries, lines = recall_log.read(place).entries, recall_log.log_lines(place)
    with Engine.open(options) as engine:
        engine.index.sync()
        for entry, line in zip(entries, lines, strict=True):
            raw = json.loads(line)
            variants = [(entry, raw), (replace(entry, now=0.0), {**raw, "now": 0.0})]
            # As if QMD had given these hits, the last one first.
            turned = {**raw, "backend": "qmd", "hits": raw["hits"][::-1]}
            variants.append((replace(entry, backend="qmd", hits=entry.hits[::-1]), turned))
            older = {"provider": "", "model": "", "generation": 0, "index": "", "settings": {}, "level": ""}
            variants.append((replace(entry, **older), {**raw, **older}))
            for one, own in variants:
                found = rerun.replay(one, engine.plan.settings, engine.search.gather)
                case = RecallCase(engine, found, own)
                asked = [rerun.delivered_line(one, f"memory/2026-10-{day:02}.md", 1) for day in (1, 4, 8)]
                for claim in (*found.claims, *asked, rerun.got_then(one)):
                    yield claim, case
