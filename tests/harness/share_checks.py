"""Checkers of the parts of bm25 and cosine: FTS5 asked word by word, texts embedded with a part and without."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import get_args

from memory_tui.core import profiles
from memory_tui.core.tokens import lowered, words_of
from memory_tui.explain.shares import BoostShare, CosineShare, ShareClaim, Shares, WithoutSentence, WordShare
from memory_tui.providers.provider_protocol import Provider
from tests.harness.claims import Case, checks

KINDS = set(get_args(ShareClaim))
_HAIR = 2e-5


@dataclass
class ShareCase(Case):
    """The parts of one chunk, and the provider that embeds it."""

    shares: Shares = field(default_factory=Shares)
    provider: Provider | None = None

    def cosine(self, text: str) -> float:
        assert self.provider is not None
        asked = self.provider.embed([self.evidence.query], "query")[0]
        return float(self.provider.embed([text], "document")[0].astype(float) @ asked.astype(float))


@checks(WordShare)
def _word_share(claim: WordShare, case: ShareCase) -> None:
    """FTS5 adds up its words, so the word alone has the score of its part."""
    any_word = profiles.get(case.trace.profile).join == "OR"
    with case.world.engine.queries.reader() as store:
        form = "stemmed" if any_word else "plain"
        rowids, bm25 = store.words.match([claim.word], form, "any" if any_word else "all")
    alone = dict(zip(rowids.tolist(), bm25.tolist(), strict=True))
    by_fts5 = max(math.log((claim.chunks - claim.holding + 0.5) / (claim.holding + 0.5)), 1e-6)
    factor = claim.idf / by_fts5 if any_word else 1.0
    assert abs(alone[case.chunk.rowid] * factor + claim.points) < 1e-9
    assert abs(claim.idf * claim.tf - claim.points) < 1e-12
    assert len(alone) == claim.holding
    assert abs(sum(one.points for one in case.shares.words) + (case.candidate.text.bm25 or 0)) < 1e-9


@checks(BoostShare)
def _boost_share(claim: BoostShare, case: ShareCase) -> None:
    """A word gives what the boost of a question without it lacks, and all words with the length give the boost."""
    part = case.candidate.lexical
    assert part is not None
    held, asked = words_of(case.text), words_of(case.evidence.query)
    in_text, in_path = claim.word in held, claim.word in lowered(case.chunk.path)
    assert abs(claim.asked - (0.45 / len(asked) if in_text else 0.0)) < 1e-12
    assert abs(claim.held - (0.2 / len(held) if in_text else 0.0)) < 1e-12
    assert abs(claim.path - (0.18 if in_path else 0.0)) < 1e-12
    together = part.text_score + sum(one.points for one in case.shares.boosts) + part.length
    assert abs(min(1.0, together) - case.candidate.text.score) < 1e-9


@checks(CosineShare)
def _cosine_share(claim: CosineShare, case: ShareCase) -> None:
    """A line's part, or a word's, is what it adds to the product with the question, over the length of the whole."""
    own = case.shares.lines if claim.line else case.shares.tokens
    assert abs(sum(one.points for one in own) - case.cosine(case.text)) < _HAIR
    if claim.line:
        line = case.text.split("\n")[claim.line - case.chunk.start_line]
        assert (claim.points > 0) == (case.cosine(line) > 0) or abs(claim.points) < _HAIR
    else:
        assert [word.lower() for word in case.text.split()].count(claim.word) == claim.times


@checks(WithoutSentence)
def _without_sentence(claim: WithoutSentence, case: ShareCase) -> None:
    """The lines of the chunk hold the sentence at its pieces, and the chunk without them has the lower cosine."""
    lines = case.text.split("\n")
    (top, first, _), (bottom, _, last) = claim.pieces[0], claim.pieces[-1]
    assert [number for number, _, _ in claim.pieces] == list(range(top, bottom + 1))
    start, end = top - case.chunk.start_line, bottom - case.chunk.start_line
    rows = [lines[start][first:], *lines[start + 1 : end + 1]]
    rows[-1] = rows[-1][: last - first if top == bottom else last]
    assert "\n".join(rows) == claim.text
    assert [own[a:b] for own, (_, a, b) in zip(lines[start : end + 1], claim.pieces, strict=True)] == rows
    rest = "\n".join([*lines[:start], lines[start][:first] + lines[end][last:], *lines[end + 1 :]])
    assert abs(case.cosine(case.text) - case.cosine(rest) - claim.points) < _HAIR
