"""Why a line was, or was not, recalled, as lines of text for a person; not yet made safe to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_tui.explain import why, wording
from memory_tui.explain.flips import Flips
from memory_tui.explain.rephrase import Rephrased
from memory_tui.explain.whynot import Account, WhyNot
from memory_tui.search.trace import ChunkRef, Trace

SHOWN = 3
"""Side effects named on a line; the others are counted."""


def answer(value: WhyNot, changes: Flips | None = None, questions: Sequence[Rephrased] = ()) -> Iterator[str]:
    """The verdict, its arithmetic, what would change it, and the other chunks that hold the line."""
    where = value.best.chunk.citation if value.best is not None else value.place.path
    yield f"{wording.label(value.fate)}  {where}"
    yield wording.sentence(value.fate)
    if value.place.remark:
        yield value.place.remark
    if value.best is not None:
        yield from (f"    {line}" for line in sums(value.best, value.trace))
    if changes is not None:
        yield from _changes(changes)
    if questions:
        yield f"Question: {'   or '.join(wording.rephrased(found) for found in questions)}"
    for other in value.others:
        yield f"Also holds the line: {other.chunk.citation}  {wording.label(other.fate)}"
    if value.more:
        yield f"and {wording.plural(value.more, 'chunk')} of the note that fared worse"


def _changes(value: Flips) -> Iterator[str]:
    verb = "Lost" if value.recalled else "Recalled"
    if not value.found:
        yield f"{verb} by no single knob."
    for found in value.found:
        also = [_few(sign, refs) for sign, refs in (("+", found.comes_in), ("-", found.drops_out)) if refs]
        yield f"{verb} with {'   '.join([wording.flip(found), *also])}"
    for knob in value.not_alone:
        yield f"N{wording.not_alone(knob)[1:]}"


def _few(sign: str, refs: Sequence[ChunkRef]) -> str:
    more = f" and {len(refs) - SHOWN} more" if len(refs) > SHOWN else ""
    return f"{sign} {', '.join(ref.citation for ref in refs[:SHOWN])}{more}"


def sums(account: Account, trace: Trace) -> Iterator[str]:
    """The arithmetic of a chunk; of one that was not proposed, what it would have been."""
    for line in steps(account, trace):
        value = f"{line.operation or ' '} {line.value:7.{line.digits}f}" if line.value is not None else ""
        yield f"{line.label:<8}{value:<11}{line.detail}".rstrip()


def steps(account: Account, trace: Trace) -> list[why.Line]:
    """The lines of arithmetic and of words; for a chunk that was not proposed, what it would have scored."""
    terms = why.terms_line(account.text, trace, chunk=account.chunk)
    if account.candidate is None:
        return [terms]
    lines = why.explain(account.candidate, trace)
    if not account.proposed:
        score = account.candidate.score
        # The last two lines tell of MMR and of the gate, which it never came to.
        lines = [*lines[:-2], why.Line("gate", f"not a candidate; as one it would have {score:.3f}")]
    return [*lines, terms]
