"""Results as lines of text. They are answers, explanations and comparisons.

Hooks and prompts print plain text, and an agent waits for them: what only other answers need is imported by those.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_tui.core.errors import MemoryTuiError, QueryError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import json_safe, one_line, safe

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import FileVerdict
    from memory_tui.explain.counterfactuals import ChangeSet, Flips
    from memory_tui.explain.noise import LevelRates
    from memory_tui.explain.rephrase import Rephrasings
    from memory_tui.explain.score_lines import ScoreLine
    from memory_tui.explain.why_not import Account, WhyNot
    from memory_tui.index.sync import SyncReport
    from memory_tui.qmd.client import QmdAnswer
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.excerpts import Excerpt
    from memory_tui.search.trace import Candidate, ChunkRef, Trace
    from memory_tui.workspace.notes import NoteLines

SHOWN = 3
"""Side effects named on a line; the others are counted."""


def answer(value: WhyNot, changes: Flips | None = None, questions: Rephrasings | None = None) -> Iterator[str]:
    """The verdict, its arithmetic, what would change it, and the other chunks that hold the line."""
    from memory_tui.explain import wording

    where = value.best.chunk.citation if value.best is not None else value.place.path
    yield f"{wording.label(value.fate)}  {where}"
    yield wording.account(value)
    if value.place.remark:
        yield value.place.remark
    if value.best is not None:
        yield from (f"    {line}" for line in sums(value.best, value.trace))
    if changes is not None:
        yield from _changes(changes)
    if questions is not None and questions.found:
        yield f"Query: {'   or '.join(wording.rephrased(found) for found in questions.found)}"
    elif questions is not None and questions.none is not None:
        yield wording.claim(questions.none)
    for other in value.others:
        yield f"Also holds the line: {other.chunk.citation}  {wording.label(other.fate)}"
    if value.more:
        yield f"and {plural(value.more, 'chunk')} of the note that score lower"


def _changes(value: Flips) -> Iterator[str]:
    from memory_tui.explain import wording
    from memory_tui.explain.counterfactuals import Flip

    if value.none is not None:
        yield wording.no_single_knob(value.none)
    changes: tuple[Flip | ChangeSet, ...] = (*value.found, *value.sets)
    for found in changes:
        also = [_few(sign, refs) for sign, refs in (("+", found.comes_in), ("-", found.drops_out)) if refs]
        also += filter(None, (wording.accepted(found), wording.saved(found.saved)))
        words = wording.flip(found) if isinstance(found, Flip) else wording.change_set(found)
        yield f"With {'   '.join([words, *also])}"
    if value.no_pair is not None:
        yield wording.no_pair(value.no_pair)
    if value.not_alone:
        yield wording.none_alone(value.not_alone)


def _few(sign: str, refs: Sequence[ChunkRef]) -> str:
    more = f" and {len(refs) - SHOWN} more" if len(refs) > SHOWN else ""
    return f"{sign} {', '.join(ref.citation for ref in refs[:SHOWN])}{more}"


def sums(account: Account, trace: Trace) -> Iterator[str]:
    """The arithmetic of a chunk; of one that was not proposed, what it would have been."""
    for line in steps(account, trace):
        value = f"{line.shown[0]} {line.shown[2:]:>7}" if line.value is not None else ""
        yield f"{line.label + ' ':<8}{value:<11}{line.detail}".rstrip()


def steps(account: Account, trace: Trace) -> list[ScoreLine]:
    """The lines of arithmetic and of words; for a chunk that was not proposed, what it would have scored."""
    from memory_tui.explain import why
    from memory_tui.explain.score_lines import ScoreLine

    terms = why.terms_line(account.text, trace, chunk=account.chunk)
    if account.candidate is None:
        return [terms]
    lines = why.explain(account.candidate, trace)
    if not account.proposed:
        score = account.candidate.score
        # The last two lines tell of MMR and of the gate, which it never came to.
        lines = [*lines[:-2], ScoreLine("gate", f"not a candidate; as one it would have {score:.3f}")]
    return [*lines, terms]


def plain_levels(rates: LevelRates | None) -> dict[str, Any] | None:
    """How often levels mislead, as data; None where answers have no level."""
    from memory_tui.explain.trace_json import plain

    return plain(rates) if rates else None


def plain_notices(engine: Engine) -> list[dict[str, Any]]:
    """What a person should know before trusting an answer, as data."""
    from memory_tui.explain.trace_json import plain

    found: list[dict[str, Any]] = plain(engine.notices())
    return found


def dumps(value: Any, indent: int | None = None) -> str:  # noqa: ANN401 - whatever JSON can hold
    """`value` as JSON in readable Unicode, with what acts on a terminal, or hides there, escaped."""
    return json_safe(json.dumps(value, ensure_ascii=False, indent=indent))


def print_json(value: Any) -> None:  # noqa: ANN401
    """Print `value` as JSON."""
    _print(dumps(value, 2))


def print_lines(lines: Iterable[str]) -> None:
    """Print `lines`, each made safe to show."""
    for line in lines:
        _print(safe(line))


def _print(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")


def _warn(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def problem(text: str) -> None:
    """What went wrong beside an answer."""
    _warn(f"memory-tui: {one_line(text)}")


def sync(engine: Engine, outcome: SyncReport, *, as_json: bool) -> None:
    """What an `index` run did."""
    from memory_tui.explain import trace_json

    if as_json:
        print_json({**trace_json.plain(outcome), "fallback": engine.providers.who().instead})
        return
    done = [plural(outcome.indexed, "file") + " indexed"]
    done += [f"{n} {word}" for n, word in ((outcome.removed, "removed"), (len(outcome.failed), "failed")) if n]
    done.append(f"{plural(outcome.embedded, 'text')} embedded")
    if outcome.shared and engine.plan.sibling is not None:
        done.append(f"{plural(outcome.shared, 'vector')} reused from {engine.plan.sibling.name}")
    _print(f"{', '.join(done)} in {outcome.seconds:.1f} s.")
    for path, reason in outcome.failed:
        _warn(f"  {one_line(path)}: {one_line(reason)}")
    for notice in engine.notices():
        _warn(f"memory-tui: {one_line(notice.message)} {one_line(notice.next_step)}".rstrip())
    for text in dict.fromkeys(filter(None, (outcome.error, outcome.postponed, outcome.unshared))):
        _warn(f"memory-tui: {one_line(text)}")


def approval(does: str, *, as_json: bool) -> None:
    """What was approved, as a sentence."""
    if not as_json:
        _print(f"Approved: {one_line(does)} To withdraw: memory-tui provider --revoke.")


def approved_extension(library: str, named_by: str) -> None:
    """Which build of sqlite-vec may be run, and who named it; beside the answer, which may be JSON."""
    _warn(
        f"Approved: {one_line(library)} is run as sqlite-vec, which {one_line(named_by)} names. "
        "To withdraw: memory-tui provider --revoke sqlite-vec."
    )


class Terminal(NamedTuple):
    """A terminal that shows styles, as far as an answer depends on it."""

    columns: int
    colour: bool


def terminal_here() -> Terminal | None:
    """Where standard output goes; None where it is no terminal that shows styles: what is piped stays plain."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    return Terminal(shutil.get_terminal_size((100, 24)).columns, "NO_COLOR" not in os.environ)


class SearchCommand(NamedTuple):
    """A query on the command line, and how its answer is written.

    With `explain` the arithmetic is there; with a budget of `characters`, the passages that it allows. On a `terminal`
    the answer is as the screen shows it, with `full` the whole text of each hit.
    """

    query: str
    source: str = ""
    as_json: bool = False
    explain: bool = False
    characters: int = 0
    full: bool = False
    terminal: Terminal | None = None


class Written(NamedTuple):
    """A text for standard output, or, as an `aside`, for standard error."""

    text: str
    aside: bool = False


def write(written: Iterable[Written]) -> None:
    """Write each text where it belongs."""
    for text, aside in written:
        (_warn if aside else _print)(text)


def searched(engine: Engine, asked: SearchCommand, trace: Trace, evidence: Evidence) -> Iterator[Written]:
    """One answer."""
    explain, passages = asked.explain, _cut_out(trace, evidence, asked.characters)
    if asked.as_json:
        yield Written(dumps(_by_builtin(engine, trace, explain, passages if asked.characters else None), 2))
        return
    if engine.backend.is_qmd and (failed := engine.backend.fallback()) is not None:
        yield Written(f"memory-tui: {engine.backend.answered_by(failed)}", aside=True)
    yield from _notices(trace, explain=explain)
    if waiting := _waiting(trace):
        yield Written(f"memory-tui: {' '.join(waiting)}", aside=True)
    if asked.terminal is not None and not (explain or passages) and trace.recalled:
        from memory_tui.render import hit_text

        columns, colour = asked.terminal
        yield from map(Written, hit_text.hits(trace, evidence, columns, colour=colour, full=asked.full))
        return
    yield from _passages(passages)
    for place, hit in enumerate(() if passages else trace.recalled):
        if place:
            yield Written("")
        yield Written(f"{hit.score:.3f} {one_line(hit.chunk.citation)}")
        if explain:
            yield from _arithmetic(hit, trace, evidence, first=not place)
        yield Written(safe(hit.snippet, keep_newlines=True).strip("\n"))
    if trace.empty is not None:
        from memory_tui.explain import wording

        yield Written("No matches. " + "\n".join(map(one_line, wording.empty(trace.empty, trace.profile))))
    if explain:
        yield from _losers(trace)


def _cut_out(trace: Trace, evidence: Evidence, characters: int) -> Sequence[Excerpt]:
    """The passages that a budget of `characters` allows, none without one."""
    if not characters:
        return ()
    from memory_tui.search.excerpts import excerpts

    return excerpts(trace, evidence, characters)


def _notices(trace: Trace, *, explain: bool) -> Iterator[Written]:
    """What a person should know of an answer, and at which level it answers."""
    for notice in trace.notices:
        if notice.not_copied and not explain:
            continue
        words = f"memory-tui: {one_line(notice.message)} {one_line(notice.next_step)}".rstrip()
        yield Written(words, aside=True)
    if trace.level is not None and trace.recalled and (explain or trace.level.level != "found"):
        yield Written(f"memory-tui: {trace.level.sentence}", aside=True)
        if explain:
            yield Written(f"level   {trace.level.level}: {trace.level.explanation}")


def _passages(passages: Sequence[Excerpt]) -> Iterator[Written]:
    """Each passage with where it stands."""
    for place, passage in enumerate(passages):
        cited = f"{passage.hit.chunk.path}#L{passage.first}-L{passage.last}"
        lead = "\n" if place else ""
        yield Written(f"{lead}{passage.hit.score:.3f} {one_line(cited)}\n{safe(passage.text, keep_newlines=True)}")


def of_qmd(found: QmdAnswer, *, as_json: bool, explain: bool) -> None:
    """One answer of QMD."""
    from memory_tui.render import qmd_text

    if as_json:
        print_json({**qmd_text.answer(found, explain=explain), "roots": []})
        return
    for remark in found.remarks:
        _warn(f"memory-tui: {one_line(remark.sentence)}")
    for line in qmd_text.lines(found, explain=explain):
        _print(line)


def _by_builtin(engine: Engine, trace: Trace, explain: bool, cut: Sequence[Excerpt] | None = None) -> dict[str, Any]:
    """The answer of the built-in index, with what it stands in for."""
    from memory_tui.explain import trace_json

    failed = engine.backend.fallback() if engine.backend.is_qmd else None
    told = {**trace_json.answer(trace, explain=explain), "backend": "builtin"}
    told |= {"fallback": failed.as_dict()} if failed else {}
    waiting, lost = _waiting(trace), _lost(engine)
    told["stale"] = waiting is not None or any(root["state"] != "watcher stalled" for root in lost)
    if waiting is not None:
        told["warning"], told["action"] = waiting
    return told | ({"passages": [*map(trace_json.passage, cut)]} if cut is not None else {}) | {"roots": lost}


def _waiting(trace: Trace) -> tuple[str, str] | None:
    """Which notes the answer lacks as they are on disk, and what to do; None where it lacks none."""
    if not trace.unsearchable:
        return None
    from memory_tui.explain import absent_words

    return absent_words.notes_lacking(trace, "memory-tui get", by_itself=False)


def _lost(engine: Engine) -> list[dict[str, str]]:
    """The roots whose notes cannot be read, or are not watched, as `path`, `state` and `detail`."""
    from memory_tui.workspace import root_state

    return [
        {"path": s.path, "state": s.state, "detail": s.detail}
        for s in root_state.lost(engine.indexer.root_watch.states())
    ]


def _arithmetic(hit: Candidate, trace: Trace, evidence: Evidence, *, first: bool) -> Iterator[Written]:
    from memory_tui.explain import why

    terms = why.terms_line(evidence.texts[hit.chunk.rowid], trace, chunk=hit.chunk, say_how=first)
    lines = [*why.explain(hit, trace), terms]
    for line in lines:
        value = f"{line.operation or ' '} {line.value:7.{line.digits}f}" if line.value is not None else ""
        yield Written(f"    {line.label + ' ':<8}{value:<11}{one_line(line.detail)}".rstrip())


def _losers(trace: Trace) -> Iterator[Written]:
    from memory_tui.explain import wording

    funnel = trace.funnel
    yield Written(
        f"\n{funnel.chunks} chunks > {funnel.vector_pool} by vector + {funnel.text_pool} by text = "
        f"{funnel.candidates} candidates > {funnel.over_gate} over {trace.floor:g} > {funnel.recalled} recalled   "
        f"(profile {trace.profile}, {trace.mode}{f'; nearest by {trace.nearest_by}' if trace.nearest_by else ''})"
    )
    for loser in trace.lost[:10]:
        yield Written(f"  {loser.score:.3f} {one_line(loser.chunk.citation)}  {wording.reason(loser.verdict)}")
    if len(trace.lost) > 10:
        yield Written(f"  and {len(trace.lost) - 10} more; --explain --json lists them all")


class StdinQuery(NamedTuple):
    """One query of `search --stdin`: `options` of OpenClaw's memory_search; `problem` says why it cannot run."""

    id: object
    query: str
    options: Mapping[str, Any] = MappingProxyType({})
    problem: str = ""


_OPTIONS = {name: f"query.{name}" for name in ("maxResults", "minScore", "maxCharacters")}


def answer_stdin_query(engine: Engine, asked: StdinQuery, source: str, characters: int, *, explain: bool) -> None:
    """One answer as one line of JSON; a query that cannot be asked answers with `error`.

    A budget of its own goes before that of `characters`.
    """
    try:
        if asked.problem:
            raise QueryError(f"The query cannot be read: {asked.problem}.", 'Write {"id": 1, "query": "..."}.')
        settings = engine.plan.settings.update(
            {key: asked.options[name] for name, key in _OPTIONS.items() if asked.options.get(name) is not None},
            "the question",
        )
        most = settings.whole("query.maxResults")
        if (found := engine.backend.ask(asked.query, most, source=source)) is not None:
            from memory_tui.render import qmd_text

            answer = {**qmd_text.answer(found, explain=explain), "roots": _lost(engine)}
        else:
            trace, evidence = engine.queries.ranked(asked.query, settings, source=source)
            if asked.options.get("maxCharacters") is not None:
                characters = settings.whole("query.maxCharacters")
            answer = _by_builtin(engine, trace, explain, _cut_out(trace, evidence, characters) if characters else None)
    except MemoryTuiError as error:
        answer = {"error": error.as_dict()}
    _print(dumps({"id": asked.id, **answer}))
    sys.stdout.flush()


def print_note(value: NoteLines, *, as_json: bool) -> None:
    """A note or some of its lines."""
    if as_json:
        from memory_tui.explain import trace_json

        print_json(trace_json.plain(value))
        return
    if not value.total_lines:
        _warn(f"memory-tui: {one_line(value.path)} is empty.")
        return
    _print(safe(value.text, keep_newlines=True).removesuffix("\n"))
    if value.cut_line:
        _warn(f"memory-tui: line {value.cut_line} is longer than {len(value.text) - 1:,} characters and was cut.")
    if value.next_from:
        _warn(f"memory-tui: line {value.next_from} to {value.total_lines} not shown; --from {value.next_from} goes on.")


def print_verdict(value: FileVerdict, *, as_json: bool) -> None:
    """Whether a path is part of the memory, and why."""
    from memory_tui.explain import trace_json

    if as_json:
        print_json(trace_json.plain(value))
        return
    _print(
        f"{one_line(value.path)}: {'part of the memory' if value.included else f'left out ({value.rule})'}. "
        f"{one_line(value.detail)}"
    )
    if value.index:
        _print(one_line(value.index))
