"""The status bar is the right end of the first line, and the two panes below the notes that say the same at length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from memory_tui.events import SyncFinished
from memory_tui.formatting import minute, one_line, plural

if TYPE_CHECKING:
    from memory_tui.engine.status import Status
    from memory_tui.tui.session import Session

LAMP = 34
"""Cells at the right end of the first line."""


def freshness(status: Status) -> tuple[bool, str]:
    """Return whether nothing is to be done, and how the index stands; a folder that is gone comes first."""
    fresh = status.freshness
    if any(root.state != "there" for root in status.roots):
        return False, "NOTES GONE"
    if status.paused:
        return False, "paused"
    behind = fresh.total - fresh.fresh
    return not behind, f"{behind:,} behind" if behind else "up to date"


def answers(status: Status) -> tuple[bool, str]:
    """Return whether who was asked for answers, and by what."""
    who = status.who
    return who.fine, "words + meaning" if who.mode == "hybrid" else "words only"


def lamp(session: Session, *, narrow: bool = False) -> Content:
    """Return the right end of the first line: who answers, and how fresh the index is; `narrow`: what is worse."""
    status = session.status
    if status is None:
        return Content.styled("opening", "$foreground-muted")
    (fine, maker), (current, state) = answers(status), freshness(status)
    if narrow and current and not session.progress and not (fine and session.read_only):
        return Content.assemble(("● ", "$success") if fine else ("▲ ", "$warning"), maker)
    state = one_line(session.progress or ("read-only" if current and session.read_only else state))
    current = current or bool(session.progress)
    if narrow or len(maker) + len(state) > LAMP - 4:
        state = state.partition(" of ")[0] if narrow else state
        return Content.assemble(("● ", "$success") if current else ("▲ ", "$warning"), state)
    mark = ("● ", "$success") if fine else ("▲ ", "$warning")
    return Content.assemble(mark, maker, "  ", (state, "" if current else "$warning"))


def index_pane(session: Session) -> Content:
    """Return two lines about the index: a folder that is gone or its freshness and last sync, then the watcher."""
    status = session.status
    if status is None:
        return Content.styled("The index is being opened.", "$foreground-muted")
    gone = [root for root in status.roots if root.state != "there"]
    fine, state = freshness(status)
    last = next((event for event in reversed(session.news) if isinstance(event, SyncFinished)), None)
    if gone:
        first = f"{gone[0].state.upper()}: {one_line(gone[0].absolute)}"
    elif session.progress:
        first = one_line(session.progress)
    else:
        made = "synced" if last and last.indexed + last.removed + last.embedded else "checked"
        first = state + (f", {made} {minute(last.at)[-5:]}" if last is not None else "")
    watcher = "watcher on" if status.watching else "no watcher, i indexes"
    style = "" if fine or (session.progress and not gone) else "$warning"
    below = f"{plural(status.freshness.total, 'note')}, {watcher}"
    return Content.assemble((first, style), "\n", (below, "$foreground-muted"))


def provider_pane(session: Session) -> Content:
    """Return up to three lines about the provider: who answers, instead of whom and why, when it is asked again."""
    status = session.status
    if status is None:
        return Content("")
    who = status.who
    name = f"{who.answers or who.requested} {who.model or who.requested_model}".strip()
    first = "words only" if who.mode != "hybrid" and who.standing != "off" else name
    if who.fine:
        return Content.assemble(one_line(name), "\n", (one_line(who.detail or who.sentence), "$foreground-muted"))
    instead = f" instead of {who.fallback.source}" if who.fallback is not None else ""
    again = f"asked again {minute(who.retry_at)[-5:]}" if who.retry_at else who.next_step
    return Content.assemble(
        (one_line(f"{first}{instead}"), "$warning"),
        "\n",
        one_line(who.reason),
        "\n",
        (one_line(again), "$foreground-muted"),
    )
