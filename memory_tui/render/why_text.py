"""Why a line was, or was not, recalled, in lines of text: verdict, arithmetic, what would change it, what lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import Flips, Rephrasings
from memory_tui.explain.why_not import Account, WhyNot
from memory_tui.explain.wording import ScoreLine
from memory_tui.formatting import plural
from memory_tui.notices import short_reason
from memory_tui.sanitize import one_line
from memory_tui.search.evidence import Evidence
from memory_tui.search.trace import Candidate, ChunkRef, Trace

NAMED = 3
"""Side effects named on a line; the others are counted."""
_LOSERS = 10
_WIDEST = 1_000
"""Cells of the words of a row: a query may hold a word of any length."""


def answer(value: WhyNot, changes: Flips | None = None, questions: Rephrasings | None = None) -> Iterator[str]:
    """Yield the verdict, its arithmetic, what would change it, and the other chunks that hold the line."""
    yield f"{wording.label(value.fate)}  {_cited(value.best) if value.best is not None else value.place.path}"
    yield wording.sentence(value.fate)
    if value.place.remark:
        yield value.place.remark
    if value.best is not None:
        yield from map(_row, steps(value.best, value.trace))
    if changes is not None:
        yield from _changes(changes)
    if questions is not None and questions.rephrased:
        yield f"Query: {'   or '.join(wording.rephrased(text) for text in questions.rephrased)}"
    elif questions is not None and questions.none is not None:
        yield questions.none.message
    for other in value.others:
        yield f"Also holds the line: {_cited(other)}  {wording.label(other.fate)}"
    if value.more:
        yield f"and {plural(value.more, 'chunk')} of the note that score lower"


def _changes(value: Flips) -> Iterator[str]:
    if value.none is not None:
        yield value.none.message
    for change in (*value.singles, *value.sets):
        also = [_few(sign, refs) for sign, refs in (("+", change.comes_in), ("-", change.drops_out)) if refs]
        also += filter(None, (wording.accepted(change), wording.saved(change.saved)))
        yield f"With {'   '.join([wording.change(change), *also])}"
    if value.no_pair is not None:
        yield value.no_pair.message
    if value.not_alone:
        yield wording.none_alone(value.not_alone)


def _few(sign: str, refs: Sequence[ChunkRef]) -> str:
    more = f" and {len(refs) - NAMED} more" if len(refs) > NAMED else ""
    return f"{sign} {', '.join(ref.citation for ref in refs[:NAMED])}{more}"


def _row(line: ScoreLine) -> str:
    number = f"{line.figure[0]} {line.figure[2:]:>7}" if line.value is not None else ""
    return f"    {line.label + ' ':<8}{number:<11}{one_line(line.detail, _WIDEST)}".rstrip()


def steps(account: Account, trace: Trace) -> list[ScoreLine]:
    """Return the lines of arithmetic and of words; for a chunk that was not proposed, what it would have scored."""
    terms = wording.terms_line(account.text, trace, chunk=account.chunk)
    if account.candidate is None:
        return [terms]
    lines = wording.explain(account.candidate, trace)
    if not account.proposed:
        score = account.candidate.score
        # The last two lines tell of MMR and of the gate, which it never came to.
        lines = [*lines[:-2], ScoreLine("gate", f"not a candidate; as one it would have {score:.3f}")]
    return [*lines, terms]


def arithmetic(hit: Candidate, trace: Trace, evidence: Evidence, *, first: bool) -> Iterator[str]:
    """Yield how a hit got its score; the `first` one says also how words are searched."""
    terms = wording.terms_line(evidence.texts[hit.chunk.rowid], trace, chunk=hit.chunk, say_how=first)
    yield from map(_row, [*wording.explain(hit, trace), terms])


def losers(trace: Trace) -> Iterator[str]:
    """Yield how many candidates there were at each step, and the first of those that lost."""
    funnel = trace.funnel
    nearest = f"; nearest by {trace.nearest_by}" if trace.nearest_by else ""
    yield ""
    yield (
        f"{funnel.chunks} chunks > {funnel.vector_pool} by vector + {funnel.text_pool} by text = "
        f"{funnel.candidates} candidates > {funnel.over_gate} over {trace.floor:g} > {funnel.recalled} recalled   "
        f"(profile {trace.profile}, {trace.mode}{nearest})"
    )
    for loser in trace.lost[:_LOSERS]:
        yield f"  {loser.score:.3f} {one_line(cited(loser))}  {short_reason(loser.verdict)}"
    if len(trace.lost) > _LOSERS:
        yield f"  and {len(trace.lost) - _LOSERS} more; --explain --json lists them all"


def empty(trace: Trace) -> list[str]:
    """Return why nothing was recalled, and what to do; nothing where something was."""
    return [*map(one_line, wording.empty(trace.empty, trace.profile))] if trace.empty is not None else []


def cited(hit: Candidate) -> str:
    """Return where a hit stands, without the blank lines at the end of its chunk."""
    return f"{hit.chunk.path}#L{hit.chunk.start_line}-L{hit.last_line}"


def _cited(account: Account) -> str:
    return cited(account.candidate) if account.candidate is not None else account.chunk.citation
