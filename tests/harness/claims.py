"""Every claim of an explanation against brute force: one checker a kind, over workspaces, profiles and knobs.

A checker gets a claim and the case that it was made in, and raises AssertionError where it is untrue. It goes by the
texts of the chunks, by the raw findings, and by whole rankings, never by what made the claim.
"""

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from memory_tui import tokens
from memory_tui.config.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.providers.builtin import static_table
from memory_tui.search import keyword
from memory_tui.search.rank import Trace, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.sentences import Notice
from tests.support.workspace import options_of

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
STILL = (("sync.watch", "false"), ("sync.onSearch", "false"), ("sync.onSessionStart", "false"))
DECAY, MMR = "query.hybrid.temporalDecay.enabled", "query.hybrid.mmr.enabled"


def adversarial(folder: Path) -> list[str]:
    """Notes that are identical, empty, of one line, of 10,000 characters, Chinese, without a known word, of odd dates.

    Returns questions about them.
    """
    memory = folder / "memory"
    memory.mkdir(parents=True)
    same = "# Router\n\nthe router omada is in the closet, anna knows the password\n"
    for number in range(5):
        (memory / f"same-{number}.md").write_text(same)
    for day in range(1, 13):
        (memory / f"2026-1{day % 2}-{day:02}.md").write_text(
            f"anna moved the router, ticket{day} of omada\n" * (day % 3 + 1)
        )
    (memory / "empty.md").write_text("")
    (memory / "blank.md").write_text("\n\n  \n")
    (folder / "MEMORY.md").write_text("router")
    (memory / "long.md").write_text(" ".join(f"cable{n} router" if n % 9 == 0 else f"cable{n}" for n in range(1200)))
    (memory / "2026-05-02.md").write_text("路由器的密码是写在柜子里的\n我的WiFi密码在纸上\n" * 4)
    (memory / "2026-05-03.md").write_text("会议记录：安娜说服务器坏了\n")
    (memory / "2026-05-04.md").write_text("安娜看了《出租车司机》。\n")
    (memory / "unknown.md").write_text("xqzvw kjhgq\n")
    (memory / "2031-01-01.md").write_text("the router of the future, omada\n")
    (memory / "2026-02-30.md").write_text("a day that is none: router, omada\n")
    (memory / "0001-01-01.md").write_text("the oldest router\n")
    return [
        "router", "密码", "路由器 密码是什么", "WiFi", "rout", "giraffe", "", "   ", "the of and", "did anna move 42",
        "router omada giraffe",
        "the router omada is in the closet, anna knows the password", "xqzvw", "what about 2026-02-30",
        "cable999", "ticket7 of omada", "memory/long.md", "anna router", "我想看《出租车司机》",
    ]  # fmt: skip


@dataclass
class World:
    name: str
    engine: Engine
    folder: Path
    texts: dict[int, str]
    questions: list[str]


def open_world(name: str, folder: Path, index: Path, profile: str, provider: str, questions: list[str]) -> World:
    engine = Engine.open(options_of(folder, index, ("profile", profile), *STILL, provider=provider, now=NOW))
    engine.index.sync()
    found = engine.search.gather("router")
    with engine.search.reader() as store:
        texts = store.texts([found.refs[row].rowid for row in range(len(found.refs))])
    return World(name, engine, folder, texts, questions)


@dataclass
class Case:
    """One question under one set of knobs; `row` is that of the chunk that a claim is about."""

    world: World
    evidence: Evidence
    settings: Settings
    trace: Trace
    row: int = -1

    @property
    def text(self) -> str:
        return self.world.texts[self.evidence.refs[self.row].rowid]


Checker = Callable[[Any, Case], None]
CHECKERS: dict[type | str, Checker] = {}


def check_claim(claim: object, case: Case) -> None:
    """Try `claim` by brute force; the checker of a notice gets its fields."""
    if isinstance(claim, Notice):
        CHECKERS[claim.kind](SimpleNamespace(**claim.fields), case)
    else:
        CHECKERS[type(claim)](claim, case)


def checks(*kinds: type | str) -> Callable[[Checker], Checker]:
    def register(checker: Checker) -> Checker:
        CHECKERS.update(dict.fromkeys(kinds, checker))
        return checker

    return register


@checks("words_off")
def _words_off(_: Any, case: Case) -> None:
    assert case.trace.rules.mode == "vectors only"


@checks("no_word")
def _no_word(_: Any, case: Case) -> None:
    assert not case.trace.side.plan.fts_query


@checks("not_matched")
def _not_matched(claim: Any, case: Case) -> None:
    assert case.row not in case.trace.side.postings.rows
    assert claim.absent
    for word in claim.hidden:
        assert is_held(case.text, word), word
    for word in set(claim.absent) - set(claim.hidden):
        assert not is_held(case.text, word), word
    check_unfound(claim.nowhere, case)


@checks("outside_text_pool")
def _outside_words(claim: Any, case: Case) -> None:
    assert claim.rank > claim.pool
    assert claim.bm25 >= claim.edge
    sides = case.evidence.keywords.each if case.evidence.keywords else ()
    every = (case.trace.side, *sides)
    matched = [side.postings.bm25 for side in every if len(side.postings.rows)]
    assert any(int(np.count_nonzero(bm25 < claim.bm25)) < claim.rank for bm25 in matched)


@checks("copy_of")
def _copy_of(claim: Any, case: Case) -> None:
    refs, candidates = case.evidence.refs, (*case.trace.recalled, *case.trace.lost)
    (shown,) = (one for one in candidates if one.citation == claim.citation)
    assert case.world.texts[shown.chunk.rowid].split() == case.text.split()
    assert refs[case.row].rowid in [copy.rowid for copy in shown.copies]


@checks("no_vector")
def _no_vector(claim: Any, case: Case) -> None:
    if claim.cause == "the built-in table does not know Chinese":
        # There is a cosine, by characters that the table hardly knows, and it does not count.
        assert any(tokens.is_cjk(one) for one in case.evidence.question.query)
        assert static_table().share_known(case.evidence.question.query) < 0.1
        assert not any(one.vector_points for one in (*case.trace.recalled, *case.trace.lost))
    else:
        assert case.evidence.cosine is None or np.isnan(case.evidence.cosine[case.row])
    check_claim(claim.text, case)


@checks("outside_vector_pool")
def _outside_meaning(claim: Any, case: Case) -> None:
    cosine = case.evidence.cosine
    own = cosine[case.row]
    assert claim.cosine == own <= claim.edge + 1e-6
    every = cosine
    assert np.count_nonzero(every > own + 1e-5) < claim.rank <= np.count_nonzero(every >= own - 1e-5)
    assert claim.pool < claim.rank <= claim.of
    check_claim(claim.text, case)


def is_held(text: str, word: str) -> bool:
    """Whether a reader finds `word` in `text`, by another way than the product: character by character."""
    text, word = text.lower(), word.lower()
    at = text.find(word)
    while at >= 0:
        around = [text[at - 1 : at], text[at + len(word) : at + len(word) + 1]]
        own = [c for c in around if c and (c.isalnum() or c == "_") and not tokens.is_cjk(c)]
        if not word.isascii() or not own:
            return True
        at = text.find(word, at + 1)
    return False


def check_unfound(words: tuple[str, ...], case: Case) -> None:
    """Try that no text holds one of `words` in letters of ASCII, as a word of its own for the tokenizer."""
    for word in filter(str.isascii, words):
        own = f" {' '.join(tokens.tokens(word, stemmed=False))} "
        texts = case.world.texts.values()
        assert not any(own in f" {' '.join(tokens.tokens(text, stemmed=False))} " for text in texts), word


@checks("blank_query")
def _blank(_: Any, case: Case) -> None:
    assert not case.evidence.question.query.strip()


@checks("no_usable_word")
def _no_usable_word(_: Any, case: Case) -> None:
    assert not case.trace.funnel["candidates"]
    assert case.trace.rules.mode == "nothing"


@checks("nothing_matched")
def _nothing_matched(claim: Any, case: Case) -> None:
    assert not case.trace.funnel["vector_pool"]
    assert case.trace.rules.mode != "nothing"
    assert not len(case.trace.side.postings.rows)
    check_unfound(claim.missing, case)


@checks("all_below_gate")
def _all_below(claim: Any, case: Case) -> None:
    assert not case.trace.recalled
    assert claim.candidates == len(case.trace.lost)
    assert claim.best == max(one.score for one in case.trace.lost)
    assert claim.best < claim.floor == case.settings.number("query.minScore")
    if not case.trace.rules.profile.fixed:
        fresh = rank(case.evidence, case.settings.set(DECAY, False, "harness"))
        assert claim.decayed == sum(c.score >= claim.floor for c in (*fresh.recalled, *fresh.lost))


@checks("words_left_out")
def _left_out(claim: Any, case: Case) -> None:
    for word in claim.words:
        if claim.reason == "common":
            with case.world.engine.search.reader() as store:
                holding = store.words.frequency([word])[0]
            assert holding > len(case.world.texts) / 2, word
        elif claim.reason == "number":
            assert word.isdigit()
        elif claim.reason == "short":
            assert len(word) < 3
        else:
            every = [tokens.stop_words(name) for name in ("en", "es", "pt", "fr", "de", "it", "nl", "ru")]
            every.append(frozenset().union(*keyword.stop_words().values()))
            assert not keyword.is_keyword(word) or any(word in known for known in every), word


def run(world: World) -> Counter[str]:
    """Check what is said of the words of every question under every variant, and of an empty answer; the kinds."""
    counts: Counter[str] = Counter()
    for query in world.questions:
        evidence = world.engine.search.gather(query)
        for lowest, decay in itertools.product((0.1, 0.45, 0.97), (False, True)):
            settings = world.engine.plan.settings.update({"query.minScore": lowest, DECAY: decay}, "harness")
            ranked = rank(evidence, settings)
            claims: list[object] = [*wording.left_out(ranked.side.plan, ranked.rules.profile.name)]
            claims += [ranked.empty] if ranked.empty else []
            for claim in claims:
                check_claim(claim, Case(world, evidence, settings, ranked))
                counts[claim.kind if isinstance(claim, Notice) else type(claim).__name__] += 1
    return counts
