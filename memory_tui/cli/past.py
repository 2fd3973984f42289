"""Commands that explain: why, why-never, replay."""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Command, moment, opened, options, positive, query_of, spoken, waiting, warn_ignored
from memory_tui.core.errors import EditRefused, IndexUnavailable, QueryError, SettingError

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.engine.edit_trials import EditsFound
    from memory_tui.engine.engine import Engine
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.source.protocol import ChunkSource

MONTH, WEEK = 30, 7
WITHOUT_EDITS = "No edit is looked for: "


def _declare_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=spoken, help="the query")
    parser.add_argument("place", metavar="PATH[:LINE]", help="a note, a line of it, or a citation such as PATH#L3-L9")
    parser.add_argument(
        "--openclaw-index",
        nargs="?",
        const="",
        metavar="DB",
        help="also look into OpenClaw's own index (default: that of its agent)",
    )
    parser.add_argument(
        "--edits", action="store_true", help="also look for the smallest edits of the note that get the line recalled"
    )
    parser.add_argument(
        "--heat",
        action="store_true",
        help="also what the cosine loses without each sentence, where a provider elsewhere has to embed them",
    )
    parser.add_argument("--apply", type=positive, metavar="N", help="make edit N of those, after its preview")
    parser.add_argument("--yes", action="store_true", help="with --apply: write without asking")
    parser.add_argument("--dry-run", action="store_true", help="with --apply: show the difference and write nothing")


def _declare_why_never(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place",
        nargs="?",
        metavar="PATH[:LINE]",
        help="a note or a line of it; without one all lines that none reached",
    )
    _days(parser, MONTH)


def _declare_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--under", action="append", metavar="KEY=VALUE", help="the setting to try, also profile=NAME; may be repeated"
    )
    parser.add_argument("--on", metavar="DATE", help="as it will be on this day (YYYY-MM-DD)")
    parser.add_argument(
        "--with-note",
        action="append",
        metavar="NOTE=FILE",
        help="with the text of FILE in the place of this note; may be repeated",
    )
    parser.add_argument(
        "--model", metavar="PROVIDER", help="with the vectors of another provider (builtin, or an approved one)"
    )
    _days(parser, WEEK)


def _days(parser: argparse.ArgumentParser, usual: int) -> None:
    parser.add_argument("--days", type=positive, metavar="N", help=f"of how many days (default: {usual})")


def _why(given: argparse.Namespace) -> int:
    from memory_tui.engine import past_questions
    from memory_tui.explain import trace_json
    from memory_tui.explain.rephrase import remedies
    from memory_tui.explain.shares import shares_of
    from memory_tui.explain.why_not import against_their_index
    from memory_tui.render import as_text, edit_text, share_text

    if query_of(given) is None:
        raise QueryError("There is no query.", 'For instance: memory-tui why "router vlan" MEMORY.md:3.')
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        with engine.queries.reader() as store:
            path, line = _place(given, engine, store)
        answer = engine.queries.why(engine.queries.gather(given.query), path, line)
        if hasattr(given, "openclaw_index"):
            answer = against_their_index(answer, _lacks(engine, given.openclaw_index))
        plan = engine.plan
        saved = past_questions.saved_effect(engine)
        changes, questions = remedies(answer, plan.settings, plan.with_profile, engine.queries.gather, saved)
        theirs = engine.backend.why(given.query, answer.place.path, line or 0)
        chain, send = engine.providers.chain, hasattr(given, "heat")
        found = shares_of(engine.queries.reader, chain.of_space, answer.best, answer.trace, send=send)
        edits = _edits(given, engine, answer)
        if hasattr(given, "apply"):
            return _apply_edit(given, engine, answer, edits)
    if hasattr(given, "json"):
        told = {**trace_json.why(answer, changes, questions), "shares": share_text.share_data(found)}
        told |= {"edits": edit_text.data(edits) if edits is not None else None} if hasattr(given, "edits") else {}
        as_text.print_json({**told, **({"qmd": theirs} if theirs else {})})
    else:
        as_text.print_lines([f"QMD: {theirs}", "The built-in index:"] if theirs else [])
        as_text.print_lines([*as_text.answer(answer, changes, questions), *share_text.share_lines(found)])
        as_text.print_lines(
            edit_text.lines(edits) if edits is not None else [_no_edit(answer)] if hasattr(given, "edits") else []
        )
    return 0


def _place(given: argparse.Namespace, engine: Engine, store: ChunkSource) -> tuple[str, int | None]:
    """The path and the line that were typed; where the query names them, query and place change places.

    Raises NoteMissing.
    """
    from memory_tui.explain import why_not
    from memory_tui.workspace.roots import NoteMissing

    try:
        return why_not.named(engine.plan.roots, store, given.place)
    except NoteMissing:
        with suppress(NoteMissing):
            place = why_not.named(engine.plan.roots, store, given.query)
            given.query, given.place = given.place, given.query
            return place
        raise


def _edits(given: argparse.Namespace, engine: Engine, answer: WhyNot) -> EditsFound | None:
    """The edits that get the line recalled, where they are asked for."""
    from memory_tui.engine import edit_trials, past_questions

    if not hasattr(given, "edits") and not hasattr(given, "apply"):
        return None
    return edit_trials.remedies(engine, answer, past_questions.past_questions(engine, _now(given), MONTH))


def _no_edit(answer: WhyNot) -> str:
    """Why no edit is looked for, and what to do where an edit might help."""
    if answer.recalled:
        return f"{WITHOUT_EDITS}the {'note' if answer.place.line is None else 'line'} is recalled already."
    if answer.place.line is None:
        return f"{WITHOUT_EDITS}name a line of the note (PATH:LINE)."
    if answer.best is None:
        return f"{WITHOUT_EDITS}no chunk of the index holds line {answer.place.line}."
    return f"{WITHOUT_EDITS}line {answer.place.line} holds no text that can be edited."


def _apply_edit(given: argparse.Namespace, engine: Engine, answer: WhyNot, edits: EditsFound | None) -> int:
    """Make one of the edits, shown first. Raises EditRefused."""
    from memory_tui.cli.curate import make

    if edits is None:
        raise EditRefused(_no_edit(answer), "")
    found = edits.found if edits is not None else ()
    if given.apply > len(found):
        raise EditRefused(f"There is no edit {given.apply}.", "The same command with --edits lists them.")
    return make(engine.notes.curator, found[given.apply - 1].edit.change, given)


def _lacks(engine: Engine, path: str) -> Callable[[str], str | None]:
    """Why OpenClaw's own index cannot recall a note, as a function of the note. Raises IndexUnavailable."""
    from memory_tui.openclaw import compare

    plan = engine.plan
    theirs = Path(path).expanduser() if path else compare.database(plan.config)
    found = compare.compare_workspace(plan.roots, theirs, compare.wanted(plan.config, plan.settings, plan.roots))
    if isinstance(found, compare.IndexComparison):
        return found.lacks
    raise IndexUnavailable(found.detail, found.next_step)


def _why_never(given: argparse.Namespace) -> int:
    from memory_tui.engine import past_questions
    from memory_tui.explain import why_not
    from memory_tui.render import as_text, past_text

    with opened(given) as engine:
        engine.indexer.catch_up()
        asked = past_questions.past_questions(engine, _now(given), getattr(given, "days", MONTH))
        if not hasattr(given, "place"):
            with waiting("Reading what was asked"):
                found = past_questions.unreached(engine, asked)
            if hasattr(given, "json"):
                as_text.print_json(past_text.unreached_data(found))
            else:
                as_text.print_lines([past_text.reach(found), *map(past_text.lines_place, found.lines)])
            return 0
        with engine.queries.reader() as store:
            place = why_not.named(engine.plan.roots, store, given.place)
        with waiting("Asking past questions") as tell:
            told = past_questions.never_of(engine, asked, *place, tell)
    if hasattr(given, "json"):
        as_text.print_json({**past_text.never_data(told), "leftOut": asked.left_out})
    else:
        as_text.print_lines([*past_text.never(told), *past_text.left_out(asked)])
    return 0


def _replay(given: argparse.Namespace) -> int:
    from memory_tui.engine import edit_trials, past_questions
    from memory_tui.render import as_text, past_text

    ways = [name for name in ("with_note", "model") if hasattr(given, name)]
    if not ways and not hasattr(given, "under") and not hasattr(given, "on"):
        raise SettingError("Nothing is to be tried.", "For instance --under query.minScore=0.2, or --on 2027-01-01.")
    if len(ways) > 1 or (ways and (hasattr(given, "under") or hasattr(given, "on"))):
        raise SettingError("--with-note and --model are tried alone.", "Leave the other options out.")
    with opened(given) as engine:
        engine.indexer.catch_up()
        now = _now(given)
        asked = past_questions.past_questions(engine, now, getattr(given, "days", WEEK))
        with waiting("Asking past questions") as tell:
            if hasattr(given, "with_note"):
                found = edit_trials.replay_with_texts(engine, asked, _texts(given), now)
            elif hasattr(given, "model"):
                with past_questions.other_model(options(given), given.model) as other:
                    found = past_questions.replay_between(engine, other, asked, tell)
            else:
                found = past_questions.replay_under(engine, asked, _after(given, engine), _ahead(given, now), tell)
    if hasattr(given, "json"):
        as_text.print_json({**past_text.replay_data(found), "leftOut": asked.left_out})
    else:
        as_text.print_lines([*past_text.replay(found), *past_text.left_out(asked)])
    return 0


def _texts(given: argparse.Namespace) -> dict[str, str]:
    """The texts that notes are to have, by their paths. Raises SettingError."""
    texts = {}
    for item in given.with_note:
        note, equals, file = item.partition("=")
        if not equals:
            raise SettingError(f"--with-note takes NOTE=FILE, not {item!r}.", "For instance MEMORY.md=/tmp/new.md.")
        try:
            texts[note] = Path(file).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"{file} cannot be read: {error}.", "Name a file of UTF-8 text.") from None
    return texts


def _now(given: argparse.Namespace) -> float:
    now = moment(given)
    return time.time() if now is None else now


def _after(given: argparse.Namespace, engine: Engine) -> Settings:
    """The settings that are tried. Raises SettingError."""
    from memory_tui.core.settings import find_knob, parse

    changes, profile = {}, ""
    for item in getattr(given, "under", ()):
        key, equals, value = item.partition("=")
        if not equals:
            raise SettingError(f"--under takes KEY=VALUE, not {item!r}.", "For instance --under query.minScore=0.2.")
        if key == "profile":
            profile = value
        else:
            knob = find_knob(key)
            changes[knob.key] = parse(knob, value)
    settings = engine.plan.with_profile(profile) if profile else engine.plan.settings
    warn_ignored(changes, settings)
    return settings.update(changes, "--under")


def _ahead(given: argparse.Namespace, now: float) -> float:
    """How many days the day of `--on` is away. Raises SettingError."""
    if not hasattr(given, "on"):
        return 0
    try:
        day = dt.date.fromisoformat(given.on)
    except ValueError:
        raise SettingError(f"--on takes a day, not {given.on!r}.", "For instance --on 2027-01-01.") from None
    return float((day - dt.datetime.fromtimestamp(now, dt.UTC).date()).days)


COMMANDS: dict[str, Command] = {
    "why": Command(_why, _declare_why),
    "why-never": Command(_why_never, _declare_why_never),
    "replay": Command(_replay, _declare_replay),
}
