"""Every sum, product and division on screen is redone from the printed digits; what is said beside them is true."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.explain.wording import ScoreLine, explain, terms_line
from memory_tui.plan import Options
from memory_tui.search.rank import Trace
from memory_tui.search.trace import Candidate, ChunkRef
from tests.support.tui import NOW, sample

WORDS = ["router", "vlan", "deploy", "rollback", "garden", "bread", "ticket", "invoice", "house", "omada", "printer"]
QUESTIONS = ("deploy rollback", "omada router vlan", "what happened on 2026-03-15", "dentist", "bread on 2026-03-19")
NUMBER = r"(-?[0-9.]+(?:e[-+][0-9]+)?)"
NEAR = 0.0021
"""What is printed with three or four digits comes to what is printed beside it, but for its last digits."""
WIDEST = 8
"""Columns of a label on every screen, the blank behind it included."""
PAIRS = "Chinese, Japanese and Korean text is matched as pairs of characters"


def common(folder: Path) -> Path:
    """Notes in which every word is common, so that bm25 is a millionth; with importance, projects, names and dates."""
    rng = random.Random(1)
    (folder / "memory").mkdir(parents=True)
    for number in range(120):
        lines = [f"- {' '.join(rng.choices(WORDS, k=rng.randint(4, 30)))}" for _ in range(rng.randint(1, 12))]
        name = f"2026-0{rng.randint(1, 3)}-{rng.randint(1, 28):02}.md" if number % 2 else f"topic-{number}.md"
        (folder / "memory" / name).write_text("\n".join(["# Notes", *lines, ""]))
    (folder / "MEMORY.md").write_text(
        "# Facts\n- the router is an Omada <!-- importance: 9 -->\n- deploy rollback <!-- importance: 2 -->\n"
        "- garden bread <!-- project: github.com/acme/a -->\n- invoice printer <!-- project: github.com/acme/b -->\n"
    )
    (folder / "memory" / "router.md").write_text("# Router\n\nvlan and Omada\n")
    return folder


def opened(tmp_path: Path, workspace: Path, profile: str = "recommended", provider: str = "scripted") -> Engine:
    changes = (("profile", profile), ("sync.watch", "false"))
    index = str(tmp_path / f"{profile}.{provider}.sqlite")
    return Engine.open(Options(workspace=str(workspace), index=index, provider=provider, now=NOW, changes=changes))


def variants(engine: Engine) -> Iterator[Trace]:
    """Many questions under many settings, each ranked from evidence that is gathered once."""
    rng = random.Random(2)
    for question in QUESTIONS:
        evidence = engine.search.gather(question)
        for profile in ("recommended", "openclaw-2026.3", "openclaw-2026.2"):
            settings = engine.plan.with_profile(profile)
            for turn in range(5):
                weight = round(rng.random(), rng.choice((1, 2, 4)))
                values = {
                    "query.hybrid.vectorWeight": weight,
                    "query.hybrid.textWeight": round(1 - weight, 4) if turn % 2 else 0.5,
                    "query.hybrid.temporalDecay.enabled": turn % 3 > 0,
                    "query.hybrid.temporalDecay.halfLifeDays": rng.randint(1, 90),
                    "query.minScore": round(rng.random(), 2),
                    "query.hybrid.mmr.enabled": turn % 2 > 0,
                    "recency.weight": 0.1,
                    "secondStage.weight": rng.choice((0.0, 0.25, 0.137, 1.0)),
                    "secondStage.neighbour": rng.choice((0.0, 0.3)),
                }
                yield engine.search.rank(evidence, settings.update(values, "test") if turn else settings)


def near(redone: float, shown: str) -> bool:
    return abs(redone - float(shown)) <= NEAR


def check(candidate: Candidate, trace: Trace) -> None:
    lines, running = explain(candidate, trace), 0.0
    for line in lines:
        assert len(line.label) < WIDEST
        check_detail(line)
        operation, value = line.figure[:1], line.figure[2:]
        if operation == "=":
            # Nine digits are the most that are shown: 1/18 + 5/9 does not add up in any number of them.
            assert abs(running - float(value)) <= max(0.51 * 10.0 ** -len(value.partition(".")[2]), 1.1e-9), lines
            running = float(value)
        elif operation:
            number = float(value)
            running = running * number if operation == "x" else running + (number if operation == "+" else -number)
    assert f"{running}" == f"{float(f'{candidate.score:.3f}')}"
    details = {line.label: line.detail for line in lines}
    gate = re.match(rf"{NUMBER} (>=|<) {NUMBER}", details["gate"])
    assert gate, details["gate"]
    assert (float(gate[1]) >= float(gate[3])) == (gate[2] == ">="), details["gate"]
    assert bool(details["score"]) == (round(candidate.score, 3) > 1)


def check_detail(line: ScoreLine) -> None:
    detail = line.detail
    if found := re.search(rf"{NUMBER}  / best {NUMBER} = {NUMBER}", detail):
        assert near(float(found[1]) / float(found[2]), found[3]), detail
    if found := re.search(rf"bm25 {NUMBER}  (1|r)/\(1\+r\) = {NUMBER}", detail):
        above = 1.0 if found[2] == "1" else float(found[1])
        assert near(above / (1 + float(found[1])), found[3]), detail
    if found := re.search(rf"{NUMBER} \+ {NUMBER} x cosine {NUMBER} = {NUMBER}", detail):
        assert near(float(found[1]) + float(found[2]) * float(found[3]), found[4]), detail
    if found := re.search(rf"{NUMBER} bm25(.*?)  = {NUMBER}(, 1 at most)?", detail):
        whole = float(found[1]) + sum(float(gain) for gain in re.findall(rf"\+ {NUMBER}", found[2]))
        assert near(min(1.0, whole), found[3]), detail
    if line.label == "rerank" and line.value:
        total, _, result = detail.partition(", best at")[0].rpartition(" = ")
        assert near(sum(map(float, total.split(" + "))), result), detail
    if line.value is not None and (found := re.search(rf"x {NUMBER}(?:  |$)", detail)) and "counts 0" not in detail:
        score = re.findall(rf"(?:= |cosine |always |path |^){NUMBER}", detail[: found.start()])[-1]
        assert near(float(score) * float(found[1]), line.figure.replace("- ", "-").lstrip("+x= ")), detail
    if found := re.search(rf"(?:^|  ){NUMBER} d old.*half-life {NUMBER} d", detail):
        left = re.match(rf"{NUMBER} x ", detail)
        assert near(0.5 ** (float(found[1]) / float(found[2])), left[1] if left else line.figure[2:]), detail


@pytest.mark.parametrize("make", [sample, common], ids=lambda make: make.__name__)
@pytest.mark.parametrize("provider", ["scripted", "none"])
def test_every_printed_number_is_redone(tmp_path: Path, make: Callable[[Path], Path], provider: str) -> None:
    with opened(tmp_path, make(tmp_path / "notes"), provider=provider) as engine:
        engine.index.sync()
        for trace in variants(engine):
            for candidate in [*trace.recalled, *trace.lost[:4]]:
                check(candidate, trace)


@pytest.mark.parametrize("provider", ["scripted", "none"])
def test_every_term_of_2026_9_adds_up(tmp_path: Path, provider: str) -> None:
    seen: set[str] = set()
    with opened(tmp_path, common(tmp_path / "notes"), "openclaw-2026.9", provider) as engine:
        engine.index.sync()
        for question in (*QUESTIONS, "router", "router.md", "garden bread", "omada printer house zebra", "deploy"):
            found = engine.search.gather(question)
            for active in (frozenset[str](), frozenset({"github.com/acme/a"})):
                evidence = replace(found, lexical=replace(found.lexical, active=active))
                for floor in (0.0, 0.35, 0.9):
                    trace = engine.search.rank(evidence, engine.plan.settings.set("query.minScore", floor, "test"))
                    for candidate in [*trace.recalled, *trace.lost[:8]]:
                        check(candidate, trace)
                        seen.update(one.term for one in candidate.factors if one.value != 1.0)
                        seen.update({"term"} if candidate.lexical and candidate.lexical.term else ())
                        seen.update({"path"} if candidate.level else ())
    assert seen == {"importance", "project", "term", "path"}


Ask = Callable[..., Trace]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    place = tmp_path_factory.mktemp("sides")
    workspace, engines = sample(place / "notes"), dict[str, Engine]()

    def run(question: str, profile: str = "recommended", provider: str = "scripted", **values: bool) -> Trace:
        if provider not in engines:
            engines[provider] = opened(place, workspace, provider=provider)
            engines[provider].index.sync()
        engine = engines[provider]
        changes = {f"query.hybrid.{key}": value for key, value in values.items()} | {"query.minScore": 0.0}
        settings = engine.plan.with_profile(profile).update(changes, "test")
        return engine.search.rank(engine.search.gather(question), settings)

    yield run
    for engine in engines.values():
        engine.close()


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
def test_a_sum_names_the_sides_that_were_searched(ask: Ask, profile: str) -> None:
    for trace, label, side in (
        (ask("printer", profile, enabled=False), "sum", "the vector alone"),
        (ask("printer", profile, "none"), "sum", "the words alone"),
        (ask("printer", profile), "hybrid", "sum of both sides"),
    ):
        assert trace.recalled
        for hit in trace.recalled:
            lines = {line.label: line.detail for line in explain(hit, trace)}
            assert lines[label] == side
            assert (lines["text"] == "hybrid is off: words are not searched") == (side == "the vector alone")


def test_what_is_odd_about_the_words_is_said(ask: Ask) -> None:
    counted = terms_line("omada vlan vlan", ask("how is the omada vlan set up", enabled=False)).detail
    assert "vlan 2x" in counted
    assert counted.endswith("  (not searched, only counted)")
    pairs = terms_line("外婆", ask("外婆 药物过敏")).detail
    assert "missing: 药物过敏" in pairs
    assert pairs.endswith(f"  ({PAIRS})")
    assert PAIRS not in terms_line("外婆", ask("外婆 药物过敏"), say_how=False).detail
    assert PAIRS not in terms_line("printer", ask("printer cellar")).detail
    assert PAIRS not in terms_line("外婆", ask("外婆 药物过敏", "openclaw-2026.3")).detail, "these rules cut nothing"


def test_words_of_the_date_that_is_indexed_with_a_chunk_are_not_missing(ask: Ask) -> None:
    first = ChunkRef(1, "a", "memory/2023-04-30.md", "memory", 1, 5)
    below = replace(first, start_line=9)
    trace, theirs = ask("sunday zebra"), ask("sunday zebra", "openclaw-2026.3")
    for chunk, text, answer, said in (
        (first, "A walk.", trace, "sunday 1x (name); missing: zebra"),
        (first, "Every Sunday.", trace, "sunday 2x (1 in the name); missing: zebra"),
        (replace(first, path="MEMORY.md"), "A walk.", trace, "missing: sunday, zebra"),
        (below, "A walk.", trace, "sunday 1x (name); not in its lines or name: zebra"),
        (below, "A walk.", theirs, "missing: sunday, zebra"),
    ):
        assert terms_line(text, answer, chunk=chunk).detail == said
