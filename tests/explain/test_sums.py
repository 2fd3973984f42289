"""Numbers on screen add up: every printed sum, product and division is redone from the printed digits."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.explain.score_lines import ScoreLine, divided
from memory_tui.explain.why import explain, in_a_line
from memory_tui.plan import Options
from memory_tui.search.trace import Candidate, Trace
from tests.support.tui import NOW, sample

WORDS = ["router", "vlan", "deploy", "rollback", "garden", "bread", "ticket", "invoice", "house", "omada", "printer"]
WIDEST = 8
"""Columns of a label on every screen, the blank behind it included."""
PROFILES = ("recommended", "openclaw-2026.3", "openclaw-2026.2")


def common(folder: Path) -> Path:
    """Notes in which every word is common, so that bm25 is a millionth."""
    rng = random.Random(1)
    (folder / "memory").mkdir(parents=True)
    for number in range(120):
        lines = [f"- {' '.join(rng.choices(WORDS, k=rng.randint(4, 30)))}" for _ in range(rng.randint(1, 12))]
        name = f"2026-0{rng.randint(1, 3)}-{rng.randint(1, 28):02}.md" if number % 2 else f"topic-{number}.md"
        (folder / "memory" / name).write_text("\n".join(["# Notes", *lines, ""]))
    return folder


def few(folder: Path) -> Path:
    """Two notes, one of which answers."""
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Facts\n\n- the router is an Omada\n")
    (folder / "memory").mkdir()
    (folder / "memory" / "2026-03-19.md").write_text("# Thursday\n\n- bread\n")
    return folder


QUESTIONS = ("deploy rollback", "omada router vlan", "what happened on 2026-03-15", "dentist", "bread on 2026-03-19")


def answers(engine: Engine) -> Iterator[Trace]:
    """Many questions under many settings, each ranked from evidence that is gathered once."""
    rng = random.Random(2)
    for question in QUESTIONS:
        evidence = engine.search.gather(question)
        for profile in PROFILES:
            for turn in range(6):
                settings = engine.plan.with_profile(profile)
                if turn:
                    weight = round(rng.random(), rng.choice((1, 2, 4)))
                    settings = settings.update(
                        {
                            "query.hybrid.vectorWeight": weight,
                            "query.hybrid.textWeight": round(1 - weight, 4) if turn % 2 else 0.5,
                            "query.hybrid.temporalDecay.enabled": turn % 3 > 0,
                            "query.hybrid.temporalDecay.halfLifeDays": rng.randint(1, 90),
                            "query.minScore": round(rng.random(), 2),
                            "query.hybrid.mmr.enabled": turn % 2 > 0,
                            "query.hybrid.mmr.lambda": round(rng.random(), 3),
                            "recency.weight": 0.1,
                            "secondStage.weight": rng.choice((0.0, 0.25, 0.6, 0.137, 1.0)),
                            "secondStage.neighbour": rng.choice((0.0, 0.1, 0.3)),
                        },
                        "test",
                    )
                yield engine.search.rank(evidence, settings)


NUMBER = r"(-?[0-9.]+(?:e[-+][0-9]+)?)"


def close(redone: float, shown: str) -> bool:
    """Whether `redone` is what is `shown`, once it is rounded to as many decimals."""
    digits = len(shown.partition(".")[2])
    return abs(redone - float(shown)) <= 0.5002 * 10.0**-digits


def check_line(line: ScoreLine) -> None:
    """The divisions and the product of one line."""
    if line.label not in ("vector", "text") or line.value is None:
        return
    detail, points = line.detail, line.shown[2:] if line.shown[0] != "-" else f"-{line.shown[2:]}"
    if found := re.search(rf"{NUMBER} bm25(.*?)  = {NUMBER}(, 1 at most)?", detail):
        whole = float(found[1]) + sum(float(gain) for gain in re.findall(rf"\+ {NUMBER}", found[2]))
        assert close(min(1.0, whole), found[3]), detail
        assert bool(found[4]) == (whole > 1), detail
        score = found[3]
    elif found := re.search(rf"words in its path {NUMBER}", detail):
        score = found[1]
    elif found := re.search(rf"{NUMBER}  / best {NUMBER} = {NUMBER}", detail):
        assert close(float(found[1]) / float(found[2]), found[3]), detail
        score = found[3]
    elif found := re.search(rf"bm25 {NUMBER}  1/\(1\+r\) = {NUMBER}", detail):
        assert close(1 / (1 + float(found[1])), found[2]), detail
        score = found[2]
    elif found := re.search(rf"bm25 {NUMBER}  r/\(1\+r\) = {NUMBER}", detail):
        assert close(float(found[1]) / (1 + float(found[1])), found[2]), detail
        score = found[2]
    elif found := re.search(rf"{NUMBER} \+ {NUMBER} x cosine {NUMBER} = {NUMBER}", detail):
        assert close(float(found[1]) + float(found[2]) * float(found[3]), found[4]), detail
        score = found[4]
    elif found := re.search(rf"always {NUMBER} in|cosine {NUMBER}  (?!counts)", detail):
        score = found[1] or found[2]
    else:
        assert line.value == 0.0, detail
        return
    weight = re.search(rf"x {NUMBER}$", detail)
    assert weight, detail
    assert close(float(score) * float(weight[1]), points), (detail, points)


def check_second(lines: list[ScoreLine]) -> None:
    """What the measures of the second stage give, each redone, and their sum."""
    given = []
    for line in lines:
        if not line.label and (
            found := re.search(rf"{NUMBER}  / best {NUMBER} = {NUMBER}  x {NUMBER} = {NUMBER}$", line.detail)
        ):
            assert close(float(found[1]) / float(found[2]), found[3]), line.detail
            assert close(float(found[3]) * float(found[4]), found[5]), line.detail
            given.append(found[5])
    line = next(line for line in lines if line.label == "rerank")
    if not line.value:
        return
    found = re.match(rf"(.*) = {NUMBER}, best at line \d+.*  x {NUMBER}$", line.detail)
    assert found, line.detail
    summed = found[1].split(" + ")
    assert [number for number in summed if float(number)] == [number for number in given if float(number)], line.detail
    assert close(sum(map(float, summed)), found[2]), line.detail
    assert close(float(found[2]) * float(found[3]), line.shown[2:]), line.detail


def check(candidate: Candidate, trace: Trace) -> None:
    """Every number of a candidate's sum, from what is printed."""
    lines = explain(candidate, trace)
    running = 0.0
    for line in lines:
        check_line(line)
        shown = line.shown
        if not shown:
            continue
        operation, value = shown[0], shown[2:]
        if operation == "=":
            assert close(running, value), [(one.label, one.detail, one.shown) for one in lines]
            running = float(value)
        elif operation == "x":
            running *= float(value)
        else:
            running += float(value) if operation == "+" else -float(value)
    if candidate.second is not None:
        check_second(lines)
    for line in lines:
        check_age(line)
    gate = next(line.detail for line in lines if line.label == "gate")
    found = re.match(rf"{NUMBER} (>=|<) {NUMBER}", gate)
    assert found, gate
    assert (float(found[1]) >= float(found[3])) == (found[2] == ">="), gate
    above = next(line.detail for line in lines if line.label == "score")
    assert bool(above) == (round(candidate.score, 3) > 1), above
    check_formula(in_a_line(candidate, trace))


def check_age(line: ScoreLine) -> None:
    """What age leaves by its half-life, and what a weight makes of it."""
    if line.label not in ("decay", "recency", "age") or line.value is None:
        return
    points = line.shown[2:]
    left = points
    if weighed := re.match(rf"{NUMBER} x {NUMBER}  ", line.detail):
        assert close(float(weighed[1]) * float(weighed[2]), points), (line.detail, points)
        left = weighed[1]
    if aged := re.search(rf"{NUMBER} d old.*half-life {NUMBER} d", line.detail):
        assert close(0.5 ** (float(aged[1]) / float(aged[2])), left), (line.detail, points)


def check_formula(formula: str) -> None:
    """`.40 x 0.854 + .60 x 0.818 = 0.832 + 0.020 age = 0.852 >= 0.35`, redone from left to right."""
    if formula.startswith("named by the question: "):
        first, *rest = re.split(" (?:>=|<) ", formula)[0].removeprefix("named by the question: ").split(" = ")
        value = float(first.split()[0])
        for number in re.findall(rf"x {NUMBER}", first):
            value *= float(number)
        assert all(abs(value - float(after)) <= 0.0011 for after in rest), formula
        return
    sums, sign, floor = re.split(" (>=|<) ", formula)
    assert (float(sums.rpartition(" ")[2]) >= float(floor.split()[0])) == (sign == ">="), formula
    first, *rest = sums.split(" = ")
    if " base" in first:
        _check_steps([first, *rest], formula)
        return
    one, other = (float(a) * float(b) for a, b in re.findall(rf"{NUMBER} x {NUMBER}", first))
    digits = len(rest[0].split()[0].partition(".")[2])
    # Two products that are not printed: each is rounded once where the longer form prints it.
    assert abs(one + other - float(rest[0].split()[0])) <= 2 * 10.0**-digits, formula
    _check_steps(rest, formula)


def _check_steps(sums: list[str], formula: str) -> None:
    """Each sum is what the one before it comes to, from left to right."""
    for before, after in itertools.pairwise(sums):
        start, *steps = before.split()
        value = float(start)
        for sign, number, _name in zip(steps[::3], steps[1::3], steps[2::3], strict=True):
            value = {"x": value * float(number), "+": value + float(number), "-": value - float(number)}[sign]
        # What age adds is not named where it is less than half a thousandth.
        assert abs(value - float(after.split()[0])) <= 0.0011, formula


@pytest.mark.parametrize("make", [sample, common, few], ids=lambda make: make.__name__)
@pytest.mark.parametrize("provider", ["scripted", "none"])
def test_every_printed_number_is_redone_from_the_printed_digits(tmp_path: Path, make, provider: str) -> None:
    options = Options(
        workspace=str(make(tmp_path / "notes")), index=str(tmp_path / "index.sqlite"), provider=provider, now=NOW
    )
    checked = 0
    with Engine.open(options) as engine:
        engine.index.sync()
        for trace in answers(engine):
            for candidate in [*trace.recalled, *trace.lost[:6]]:
                check(candidate, trace)
                checked += 1
    assert checked > 20


def curated(folder: Path) -> Path:
    """Notes with importance, projects, names that a question can be, and dates."""
    common(folder)
    (folder / "MEMORY.md").write_text(
        "# Facts\n- the router is an Omada <!-- importance: 9 -->\n- deploy rollback <!-- importance: 2 -->\n"
        "- garden bread <!-- project: github.com/acme/a -->\n- invoice printer <!-- project: github.com/acme/b -->\n"
    )
    (folder / "memory" / "router.md").write_text("# Router\n\nvlan and Omada\n")
    return folder


@pytest.mark.parametrize("provider", ["scripted", "none"])
def test_every_term_of_2026_9_adds_up(tmp_path: Path, provider: str) -> None:
    options = Options(
        workspace=str(curated(tmp_path / "notes")),
        index=str(tmp_path / "index.sqlite"),
        provider=provider,
        now=NOW,
        changes=(("profile", "openclaw-2026.9"),),
    )
    seen: set[str] = set()
    with Engine.open(options) as engine:
        engine.index.sync()
        for question in (*QUESTIONS, "router", "router.md", "garden bread", "omada printer house zebra", "deploy"):
            found = engine.search.gather(question)
            for active in (frozenset[str](), frozenset({"github.com/acme/a"})):
                evidence = replace(found, lexical=replace(found.lexical, active=active))
                for floor in (0.0, 0.35, 0.9):
                    settings = engine.plan.settings.set("query.minScore", floor, "test")
                    trace = engine.search.rank(evidence, settings)
                    for candidate in [*trace.recalled, *trace.lost[:8]]:
                        check(candidate, trace)
                        assert all(len(line.label) < WIDEST for line in explain(candidate, trace))
                        seen.update(one.term for one in candidate.factors if one.value != 1.0)
                        seen.update({"term"} if candidate.lexical and candidate.lexical.term else ())
                        seen.update({"path"} if candidate.level else ())
    assert seen == {"importance", "project", "term", "path"}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_score_a_hair_below_its_floor_is_printed_below_it(tmp_path: Path, profile: str) -> None:
    options = Options(workspace=str(sample(tmp_path / "notes")), index=str(tmp_path / "i.sqlite"), provider="scripted")
    checked = 0
    with Engine.open(replace(options, now=NOW)) as engine:
        engine.index.sync()
        evidence = engine.search.gather(QUESTIONS[1])
        settings = engine.plan.with_profile(profile)
        for candidate in engine.search.rank(evidence, settings.set("query.minScore", 0.0, "test")).recalled[:4]:
            for floor in (candidate.score, candidate.score * (1 + 1e-9), candidate.score + 4e-4):
                if floor > 1:
                    continue
                trace = engine.search.rank(evidence, settings.set("query.minScore", floor, "test"))
                for one in (*trace.recalled, *trace.lost[:4]):
                    check(one, trace)
                    checked += 1
    assert checked


def test_only_tiny_values_are_printed_as_powers_of_ten() -> None:
    """A cosine that takes seven decimals to close its line is still a decimal that a person can read."""
    assert "e" not in "".join(divided("cosine", 0.3273165, 0.5456292, "0.599888", 3)).replace("cosine", "").replace(
        "best", ""
    )
    assert "e-" in "".join(divided("bm25", 3.2e-8, 5.1e-8, "0.627", 3))
