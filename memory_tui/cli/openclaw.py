"""Commands about OpenClaw's own files: its index, its dreams, its flushes, its triggers, its ledger of trust."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.cli.context import opened, options, user_time
from memory_tui.cli.notes import curator_of
from memory_tui.cli.output import print_lines, say, show, waiting
from memory_tui.config.places import session_folder
from memory_tui.engine.openclaw_answer import injected
from memory_tui.errors import EditRefused, SettingError
from memory_tui.explain import trace_json
from memory_tui.notes.curator import Curator
from memory_tui.openclaw import compare, sessions
from memory_tui.openclaw import flush as flushes
from memory_tui.openclaw.trust import Trust
from memory_tui.plan import Plan
from memory_tui.render import host_text
from memory_tui.workspace.roots import scan


def compare_index(args: argparse.Namespace) -> int:
    """Tell what OpenClaw's own index holds of the notes."""
    chosen = plan.plan(options(args))
    path = Path(args.db).expanduser() if args.db is not None else None
    with waiting("Reading OpenClaw's index"):
        outcome = compare.compare_configured(chosen.config, chosen.settings, chosen.roots, path)
    if not isinstance(outcome, compare.IndexComparison) and not args.json:
        say(f"{outcome.detail} {outcome.next_step} ({outcome.state})")
    code = {"ok": 0, "missing": 2}.get(outcome.state, 1)
    return show(args, lambda: trace_json.plain(outcome), host_text.compared(outcome), code)


def inject(args: argparse.Namespace) -> int:
    """Tell which entries OpenClaw puts before its agent for a message."""
    with opened(args) as engine:
        if engine.plan.settings.on("sync.onSearch"):
            engine.index.catch_up()
        entries = injected(engine, args.message)
    return show(args, [to_builtins(each) for each in entries], host_text.injected(entries))


# --- flush ---------------------------------------------------------------------------------------------------------


def flush(args: argparse.Namespace) -> int:
    """Tell whether a session should write down what it knows now; without one, of all sessions of the agent."""
    choices = plan.choose(options(args))
    transcript = Path(args.transcript).expanduser() if args.transcript is not None else None
    session = args.session or (transcript.stem if transcript else "")
    if not session:
        return _every(choices, args)
    facts = sessions.facts_of(choices.agent, session, transcript)
    if args.compactions is not None:
        facts = replace(facts, compactions=args.compactions)
    if args.done:
        sessions.FlushMarks(choices.agent.id).done(session, facts.compactions)
        return show(args, {"session": session, "done": True})
    if args.tokens is not None:
        facts = replace(facts, total_tokens=args.tokens, fresh=True)
    rules = sessions.rules_of(choices.config)
    window = args.context_window or sessions.window_of(choices.config, args.model)
    current = replace(facts, next_tokens=args.next_tokens)
    if transcript is not None:
        current = sessions.session_of(transcript, current, flushes.threshold(window, rules))
    decision = flushes.decide(
        rules,
        current,
        window,
        heartbeat=args.heartbeat,
        cli_provider=args.cli_provider,
        writable=not args.sandboxed and sessions.writable(choices.config, session),
    )
    now = user_time(choices, args)
    turn = flushes.turn(rules, f"{now:%Y-%m-%d}", f"{now:%Y-%m-%d %H:%M %Z}".strip()) if decision.flush else None
    return show(
        args,
        {"session": session, **to_builtins(decision), "turn": to_builtins(turn) if turn else None},
        [
            f"{'Flush' if decision.flush else 'No flush'}: {decision.detail}.",
            *(["", *turn.prompt.split("\n"), "", *turn.system_prompt.split("\n")] if turn else ()),
        ],
    )


def _every(choices: Plan, args: argparse.Namespace) -> int:
    """Tell how near every session of the agent is to its flush."""
    near = sessions.near(choices.config)
    data = [
        {
            "session": each.session,
            "transcript": str(each.transcript),
            **to_builtins(each.decision),
            "flushedAt": each.flushed_at,
        }
        for each in near
    ]
    lines = [
        f"{each.session}: {'flush now' if each.decision.flush else 'no flush'}: {each.decision.detail}."
        for each in near
    ]
    none = f"No sessions in {session_folder(choices.agent.id)}; name one with --transcript."
    return show(args, data, lines or [none])


# --- trust ---------------------------------------------------------------------------------------------------------


def trust(args: argparse.Namespace) -> int:
    """Tell whether OpenClaw still trusts each note, or change who keeps its ledger."""
    if sum(map(bool, (args.approve, args.withdraw, args.repair))) > 1:
        raise SettingError("--approve, --withdraw and --repair exclude each other.", "Give one of them.")
    notes = curator_of(args)
    ledger, now = notes.trust, notes.plan.clock()
    if ledger is None or (ledger.ledger(now).absent and not args.withdraw):
        raise EditRefused("OpenClaw keeps no ledger of these notes.", "It does from 2026.8 on, in its state folder.")
    if (args.repair or args.approve or args.withdraw) and notes.read_only:
        raise EditRefused(notes.read_only, "Start without --read-only to change the ledger.")
    if args.repair:
        return _repair(ledger, notes, args.repair)
    if args.approve:
        ledger.approve("openclaw trust --approve")
    if args.withdraw:
        ledger.withdraw()
    report = ledger.report((note.path for note in scan(notes.roots).notes), now)
    return show(args, lambda: to_builtins(report), host_text.trust_lines(report), 1 if report.problem else 0)


def _repair(ledger: Trust, notes: Curator, path: str) -> int:
    """Write the class agent back for one note, after its whole text was shown and its name typed."""
    note, data = ledger.of(path, notes.plan.clock()), notes.read(path)
    if note is None or data is None:
        raise EditRefused(
            f"OpenClaw's ledger does not cover a note {path}.", "memory-tui openclaw trust lists the notes."
        )
    if note.state not in ("untrusted", "edited"):
        raise EditRefused(f"{path} needs no repair: {note.words}.", "Nothing was changed.")
    print_lines([f"{path}: {note.words}.", "", *data.decode("utf-8", "replace").split("\n")])
    print_lines([f"Everything above goes into the agent's prompt again. To trust it, type its name: {path}"])
    if sys.stdin.readline().strip() != path:
        raise EditRefused("Nothing was changed: the name was not typed.", f"It is {path}.")
    number = notes.repair(path, data).id
    print_lines([f"{path} is trusted again (agent); memory-tui undo {number} undoes it."])
    return 0
