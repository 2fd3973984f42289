"""Words of a query in a chunk: which stand in it, which are missing, which nobody searched for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_tui import profiles, tokens
from memory_tui.explain import wording
from memory_tui.explain.absent_words import holds
from memory_tui.explain.shares import ScoreLine
from memory_tui.formatting import plural
from memory_tui.notices import Notice
from memory_tui.search.trace import ChunkRef, QueryPlan, Trace


class TermCount(Struct, frozen=True):
    """How often each word of the query stands in a chunk (0: missing), and the words nobody searched for."""

    counts: dict[str, int]
    dropped: tuple[str, ...]


def count_terms(plan: QueryPlan, text: str, profile: str) -> TermCount:
    """Return the words of `plan` counted in `text`, by stem where the profile stems."""
    stemmed = profiles.get(profile).join == "OR"
    present: dict[str, int] = {}
    for token in tokens.tokens(text, stemmed=stemmed):
        present[token] = present.get(token, 0) + 1
    counts = {}
    for word in plan.words:
        if plan.inside:
            counts[word] = text.lower().count(word.lower())
            continue
        parts = tokens.tokens(word, stemmed=stemmed)
        counts[word] = (
            text.count(word)
            if stemmed and tokens.is_cjk(word)
            else min((present.get(token, 0) for token in parts), default=0)
        )
    return TermCount(counts, plan.dropped)


def terms_line(text: str, trace: Trace, *, chunk: ChunkRef | None = None, say_how: bool = True) -> ScoreLine:
    """The words that stand in `text` with counts, those missing, those left out; with `say_how` what is odd about them.

    With `chunk`, what is indexed with its text counts as well: the day in its name, and the headings above it.
    """
    count = count_terms(trace.plan, text, trace.profile)
    added = chunk is not None and _indexed_with_more(trace)
    dated = (
        count_terms(trace.plan, tokens.indexed_form(chunk.path, (), ""), trace.profile).counts
        if chunk is not None and added
        else {}
    )
    present: list[str] = []
    missing: list[str] = []
    unseen: list[str] = []
    for run, searched_words in _by_run(count.counts, trace).items():
        matched = [word for word in searched_words if count.counts[word] or dated.get(word)]
        if not matched:
            (unseen if holds(text, run) else missing).append(run)
        elif searched_words == [run]:
            present.append(_times(run, count.counts[run], dated.get(run, 0)))
        else:
            present.append(f"{run} ({len(matched)} of {plural(len(searched_words), 'pair')} of characters)")
    parts = [", ".join(present)] if present else []
    if missing:
        # The headings above are indexed with a chunk, but not kept with it; above the first line there are none.
        below = chunk is not None and added and chunk.start_line > 1
        parts.append(f"{'not in its lines or date' if below else 'missing'}: {', '.join(missing)}")
    if unseen:
        parts.append(f"inside longer words, not seen: {', '.join(unseen)}")
    if dropped := [_left_out(left_word, trace) for left_word in wording.left_out(trace.plan, trace.profile)]:
        parts.append(f"left out: {', '.join(dropped)}")
    if say_how and trace.plan.time:
        searched = "" if trace.plan.time_alone else ", not searched"
        parts.append(f'"{trace.plan.time_words}" is read as {trace.plan.time}{searched}')
    how = _how_matched(trace) if say_how else ""
    return ScoreLine("terms", ("; ".join(parts) or "no words to look for") + (how and f"  ({how})"))


def _left_out(claim: Notice, trace: Trace) -> str:
    return wording.with_reason(_whole(claim.fields["words"], trace), claim.fields["reason"])


def _whole(dropped: Sequence[str], trace: Trace) -> list[str]:
    """Return words as a person asked them; of pairs of characters, which are no words, how many of which run."""
    whole = {word: tokens.as_asked([word], trace.query)[0] for word in dropped}
    pairs = Counter(run for word, run in whole.items() if run != word)
    return [word for word, run in whole.items() if run == word] + [
        f"{plural(count, 'pair')} of characters of {run}" for run, count in pairs.items()
    ]


def _by_run(counts: Mapping[str, int], trace: Trace) -> dict[str, list[str]]:
    """The words as they stand in the question, each with the words, or pairs of characters, that were searched for."""
    by_run: dict[str, list[str]] = {}
    for word in counts:
        by_run.setdefault(tokens.as_asked([word], trace.query)[0], []).append(word)
    return by_run


def _indexed_with_more(trace: Trace) -> bool:
    """Return whether words were looked for in more than the text of a chunk."""
    return profiles.get(trace.profile).join == "OR" and not trace.plan.inside and trace.mode != "vectors only"


def _times(word: str, in_text: int, in_date: int) -> str:
    """Return `sunday 3x`, and how many of them stand in the day of the file's name: `sunday 1x (date)`."""
    share = f" ({in_date} in the date)" if in_text else " (date)"
    return f"{word} {in_text + in_date}x{share if in_date else ''}"


def _how_matched(trace: Trace) -> str:
    """Return what a person would not expect of the words that are shown; empty where there is nothing."""
    plan = trace.plan
    remarks = ["not searched, only counted"] if trace.mode == "vectors only" and plan.words else []
    if profiles.get(trace.profile).join == "OR" and any(len(word) == 2 and tokens.is_cjk(word) for word in plan.words):
        remarks.append("Chinese, Japanese and Korean text is matched as pairs of characters")
    return "; ".join(remarks)


def file_line(path: str, trace: Trace) -> ScoreLine:
    """Return whether the note on disk is what was indexed, as far as the last look at the folder knows."""
    waiting = next((item for item in trace.unsearchable if item.path == path), None)
    return ScoreLine("file", f"{waiting.state}: {waiting.detail}" if waiting else "indexed as it is on disk")
