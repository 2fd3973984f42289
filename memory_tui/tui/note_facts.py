"""What the screen says of notes: the list, the strip over a text, what the host never reads, a difference."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.content import Content

from memory_tui.formatting import age_words, one_line, plural, safe
from memory_tui.hosts import claude_code, codex
from memory_tui.notes.changes import diff_lines
from memory_tui.notes.journal import left
from memory_tui.shared import workspace_of
from memory_tui.tui.reader import NotePage, Part, shown_line
from memory_tui.tui.rows import short_path
from memory_tui.workspace.notes import note_date, note_date_2026_9
from memory_tui.workspace.roots import ROOT_NOTES, NoteMissing
from memory_tui.workspace.transcripts import SOURCE

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.notes import FileRow
    from memory_tui.notes.changes import Change
    from memory_tui.notes.links import NoteLinks
    from memory_tui.plan import Plan

MOST = 200_000
"""Characters of a note that are shown at once: wrapping them takes the screen's thread a third of a second."""
MOST_DIFFERENCE = 1_500
"""Lines of a difference that are shown."""
MOST_RENDERED = 20_000
"""Characters of a note that is rendered: Textual's Markdown takes 0.3 seconds for 4,000."""
MARKS = {
    "fresh": (" ", ""),
    "new": ("+", "$warning"),
    "deleted": ("-", "$warning"),
    "failed": ("!", "$error"),
    "missing root": ("?", "$error"),
}
"""The mark and style of each state that is not `~`; what is pending says how."""
RECALL_SECONDS = 7 * 86_400.0
"""So far back transcripts are read."""
_ONLY_LOOKING = "Notes that appear here are indexed at once. Only looking? Run memory-tui demo."
_OFTEN = 5
_YEAR = 330
"""Days after which a day is written with its year."""


# --- the list -----------------------------------------------------------------------------------------------------


def ordered(files: Sequence[FileRow]) -> list[FileRow]:
    """Return the notes as they are listed: the curated one, topics, days from the newest on, transcripts last."""

    def order(row: FileRow) -> tuple[int, int, str]:
        """Return the sort key of a note: its group, then in days the newest first, then the path."""
        if row.source == SOURCE:
            return 3, 0, row.path
        if row.path in ROOT_NOTES:
            return 0, 0, row.path
        return (2, -row.day.toordinal(), row.path) if row.day else (1, 0, row.path)

    return sorted(files, key=order)


def matches(row: FileRow, letters: str, use: str = "") -> bool:
    """Return whether the words of a filter stand in path, title or type of a note, or tell how agents use it."""
    day = f"{row.day} {row.day.day} {row.day:%B %y}" if row.day else ""
    # How often and since when a note is used are no days to look for.
    text = f"{row.path} {row.title} {row.kind} {day} {re.sub(r'[0-9-]+', '', use)}".casefold()
    # The 4th of April is no other day of the fourth month.
    numbers = frozenset(re.findall(r"\d+", text))
    return all(word in (numbers if word.isdecimal() and len(word) < 3 else text) for word in letters.casefold().split())


def list_row(row: FileRow, today: dt.date, width: int, *, marked: bool = False) -> Content:
    """Return the row of a note: a mark of its state, its name, its kind and its title; a marked one shows that.

    A daily log is called by its day, any other note by its path; what a title repeats of the file's name is left out.
    """
    # `detail` says how a note is pending, `new` or `deleted`; what has no mark of its own is shown as `~`.
    state = row.detail if row.state == "pending" and row.detail in MARKS else row.state
    mark = ("■", "$accent") if marked else MARKS.get(state, ("~", "$warning"))
    title = re.sub(rf"(?i)^{re.escape(row.path.rpartition('/')[2])}([\s:–—-]+|$)", "", one_line(row.title))
    if row.day is not None and row.source != SOURCE:
        name = f"{row.day.day:>2} {row.day:%b}" + (f" {row.day:%y}" if (today - row.day).days > _YEAR else "")
        if 0 < len(row.dated) < len("2026-03-07"):
            # A shorter date is that of a whole month or year, which is written as it is.
            name = row.dated
        folder, _, stem = row.path.removeprefix("memory/").removesuffix(".md").rpartition("/")
        # Behind the day comes what else the file is called, where the title lacks a word of it, and the folder without
        # years and months: `memory/work/2026/2026-03-07-call.md` is ` 7 Mar call work`.
        rest = one_line(stem.removeprefix(f"{row.day}").strip("-_ ")) if stem.startswith(f"{row.day}") else ""
        if not set(re.findall(r"\w+", rest.casefold())) <= set(re.findall(r"\w+", title.casefold())):
            name += f" {rest}"
        name = f"{name} {one_line(folder.strip('0123456789-/'))}".rstrip()
    else:
        name = short_path(one_line(row.path.removeprefix("memory/")), width - 2)
        # Where a name is cut, no single letter of its ending is left.
        name = name if Content(name).cell_length <= width - 2 else name.removesuffix(".md")
        title = "" if title.casefold() in (name.casefold(), name.removesuffix(".md").casefold()) else title
    head = Content.assemble(mark, f" {name}", (f"  {row.kind}" if row.kind else "", "$accent"))
    # A title needs room for more than its first letter.
    words = (f"  {title}" if title and head.cell_length + 4 <= width else "", "$foreground-muted")
    return Content.assemble(head, words).truncate(width, ellipsis=True)


# --- the note -----------------------------------------------------------------------------------------------------


def page(engine: Engine, path: str, line: int = 1, row: FileRow | None = None) -> NotePage:
    """Return what is shown of the note `row` with `line` in it, as it is now; on a worker. Raises MemoryTuiError."""
    engine, standing = engine.of_note(path)
    try:
        document = engine.notes.read(path)
    except NoteMissing:
        edits = engine.notes.curator.journal.edits(path, most=1)
        if edits and edits[0].after is None and not engine.plan.options.read_only:
            raise NoteMissing("This note is gone.", "5 History brings it back.") from None
        raise
    text = "\n".join(map(shown_line, document.text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")))
    first, part = window(text, line)
    whole = len(part) == len(text)
    if standing is not None:
        owner = workspace_of(path)
        words = "; ".join(filter(None, (f"of {owner}, read-only", standing.trouble)))
        return NotePage(path, part, first, ((words, "$warning"),), whole=whole, owner=owner)
    lines = text.count("\n") + (not text.endswith("\n"))
    parts: list[Part] = []
    not_read = unread(engine, path, lines)
    if not whole:
        last = first + part.count("\n")
        parts.append((f"lines {first:,}-{last:,} of {lines:,}, E opens all", "$warning"))
    if document.replaced or document.nul:
        what = f"{plural(document.replaced, 'byte')} not UTF-8" if document.replaced else "NUL characters in it"
        parts.append((what, "$warning"))
    trust = engine.notes.trust_of(path)
    if trust is not None and trust.state not in ("agent", "unrecorded"):
        parts.append((trust.words, "$warning"))
    parts.append((size_words(len(document.text.encode("utf-8", "replace"))), ""))
    parts += about(engine, path, row)
    return replace(not_read, text=part, first=first, parts=(*not_read.parts, *parts), whole=whole)


def window(text: str, line: int, most: int = MOST) -> tuple[int, str]:
    """Return the lines around `line` that fit `most` characters, and the number of the first of them."""
    lines = text.split("\n")
    # Both are indices of `lines`; the part grows upwards first, then downwards.
    first = last = min(line, len(lines)) - 1
    used = len(lines[first])
    # Of a note that does not fit, a third of the room is for the lines above.
    while first and used + len(lines[first - 1]) < (most // 3 if len(text) > most else most):
        first -= 1
        used += len(lines[first]) + 1
    while last + 1 < len(lines) and used + len(lines[last + 1]) < most:
        last += 1
        used += len(lines[last]) + 1
    return first + 1, "\n".join(lines[first : last + 1])


def line_after(before: NotePage, after: NotePage, line: int) -> int:
    """Return where `line` of a note stands when it was read again: by its place, else by its text, the nearest."""
    old, new = before.text.split("\n"), after.text.split("\n")
    # Where the line is in the text that was read, and how many lines more there are now.
    index, added = line - before.first, len(new) - len(old)
    if not 0 <= index < len(old):
        return line
    # Nothing moved above it.
    if added == 0 or old[: index + 1] == new[: index + 1]:
        return after.first + min(index, len(new) - 1)
    # Nothing changed from it on.
    if old[index:] == new[added + index :]:
        return after.first + added + index
    alike = [number for number, text in enumerate(new) if text == old[index]]
    return after.first + min(alike, key=lambda number: abs(number - index), default=min(index, len(new) - 1))


def size_words(size: int) -> str:
    """Return a size as a person says it: `840 B`, `3.9 KB`, `51 KB`, `2.6 MB`."""
    if size < 1_000:
        return f"{size} B"
    amount, unit = (size / 1_000, "KB") if size < 1_000_000 else (size / 1_000_000, "MB")
    return f"{amount:.{1 if amount < 10 else 0}f} {unit}"


def unread(engine: Engine, path: str, lines: int) -> NotePage:
    """Return a page without text that holds the lines its host never puts into a prompt, with rulers around them.

    Its only part is a sentence about them. Of a note that is read in full the page has nothing but its path.
    """
    plan = engine.notes.curator.plan
    # The host that reads the note at the start of a session, but not all of it where it is long.
    host = "Claude Code" if claude_code.in_folders(path, claude_code.folders(engine.plan.roots)) else "OpenClaw"
    if path != plan.memory() or codex.is_memory(engine.plan.roots.workspace):
        return NotePage(path)
    openclaw, claude = (row.cut for row in plan.budget(engine.notes.curator.read(path)))
    cut, other = (openclaw, claude) if host == "OpenClaw" else (claude, None)
    if cut is None:
        return NotePage(path)
    # `whole` leaves out the line in which the cut falls, whose beginning is read.
    # Where the text is not read again, the end is behind the last line.
    first, end = cut.whole[0], cut.until_line or lines + 1
    rulers = {first: f"{host} stops {'reading here' if cut.column == 1 else f'in line {cut.line}'}"}
    if cut.until_line > cut.line:
        rulers[end] = f"{host} reads on {'here' if cut.until_column == 1 else f'in line {end}'}"
    # 45 cells is what a window of 80 has for it.
    both = f"{host} skips {cut.lines.replace(' to ', '-')}, Claude {other.whole[0]} on" if other else ""
    parts = ((both or f"{host} starts without {cut.lines}", "$error"),)
    return NotePage(path, parts=parts, unread=range(first, end), rulers=rulers)


def about(engine: Engine, path: str, row: FileRow | None) -> Iterator[Part]:
    """Yield how a note stands in index, time and links; for worker threads."""
    if row is not None:
        if row.state != "fresh" or row.detail:
            yield row.detail or row.state, "$warning"
        yield plural(row.chunks, "passage"), ""
        yield age(engine.plan, row), ""
    if back := Counter(link.source for link in engine.notes.curator.plan.links.about(path).back):
        yield f"{plural(len(back), 'note')} mention{'s' * (len(back) == 1)} this", ""


def age(plan: Plan, row: FileRow) -> str:
    """Return the age that a search counts, in words; `always` for what does not."""
    day, is_evergreen = row.day, row.day is None
    if plan.profile.exact_paths or plan.profile.age == "multiply":
        # These profiles read the day from the path alone.
        dated = note_date_2026_9(row.path) if plan.profile.exact_paths else note_date(row.path)
        day, is_evergreen = dated.day, dated.basis == "evergreen"
    if row.source != SOURCE and is_evergreen:
        return "always"
    # The search counts whole days from a date, and any time from the last change.
    return age_words((today_of(plan) - day).days if day else (plan.clock() - row.mtime) / 86_400)


def today_of(plan: Plan) -> dt.date:
    """Return the day that it is for the notes."""
    return dt.datetime.fromtimestamp(plan.clock(), dt.UTC).astimezone(plan.config.time_zone).date()


def recall_uses(engine: Engine) -> Callable[[str, dt.date | None], str]:
    """Return what says how often agents were given a note of a day, and whether an answer used it.

    The log tells of its time, the transcripts of the last days. Raises IndexUnavailable.
    """
    workspace = engine.plan.roots.workspace
    # A recall is ranked as the agent's search did it, so numpy comes with these: the first frame does not wait for it.
    from memory_tui import agents, recall_log

    log = recall_log.read(recall_log.recall_log_path(workspace))
    sessions, _ = agents.sessions(workspace, engine.plan.clock() - RECALL_SECONDS)
    recalls = [recall for session in sessions for turn in session.turns for recall in turn.recalls]
    recalled = Counter(path for recall in recalls for path in recall.entry.delivered)
    used = frozenset(path for recall in recalls for path in recall.used)
    # The log and the transcripts tell of the same recalls: the one that knows of more counts.
    at_least = log.delivered | recalled

    def use(path: str, day: dt.date | None) -> str:
        """Return the words for one note; empty where the log has not begun."""
        if times := at_least[path]:
            unused = recalled[path] >= _OFTEN and path not in used
            return f"recalled {plural(times, 'time')}{', unused' if unused else ', often' * (times >= _OFTEN)}"
        since = dt.datetime.fromtimestamp(log.since, engine.plan.config.time_zone).date()
        # Since the log begins, or since the day of the note; one of a day to come counts from today.
        return f"never recalled since {max(since, min(day or since, today_of(engine.plan)))}" if log.since else ""

    return use


def strip(parts: Sequence[Part], width: int) -> Content:
    """Return as many parts as fit `width`, the first in any case."""
    # `lead` stands between two parts, so it is empty before the first one.
    shown, lead = Content(""), ""
    for words, style in parts:
        longer = Content.assemble(shown, (lead, "$foreground-muted"), (one_line(words), style))
        if lead and longer.cell_length > width:
            break
        shown, lead = longer, " · "
    return shown.truncate(width, ellipsis=True)


def link_rows(reply: NoteLinks) -> list[tuple[str, str]]:
    """Return where links lead, also to no note, and who links here, each once: `path:line` and the words."""
    rows = {}
    for link in reply.links:
        if link.target:
            rows[f"{link.target}:{link.target_line or 1}"] = f"→ {one_line(link.target)}"
        else:
            place = f"{link.source}:{link.line}"
            lead = f"{rows[place]}; " if place in rows else f"✗ line {link.line}: "
            rows[place] = f"{lead}no note is at {one_line(link.written)}"
    counts = Counter(link.source for link in reply.back)
    for link in reply.back:
        times = f"  {counts[link.source]} times" if counts[link.source] > 1 else ""
        # The count of a note is taken at its first link, so each is listed once.
        if counts.pop(link.source, 0):
            rows[f"{link.source}:{link.line}"] = f"← {one_line(link.source)}{times}"
    return list(rows.items())


def unsaved(engine: Engine) -> frozenset[str]:
    """Return the notes with text that was typed and not saved when the app ended. Raises EditRefused."""
    return frozenset(text.path for text in left(engine.notes.curator.journal))


# --- a change -----------------------------------------------------------------------------------------------------


def difference(change: Change, width: int = 0) -> Content:
    """Return a change line by line, in colours and without secrets, below what a person should know of it.

    A line that is wider than `width` goes on below its words, not below its number; 0 wraps none.
    """
    styles = {"gone": "$error", "new": "$success", "same": ""}
    marks = {"gone": "-", "new": "+", "same": " "}
    pieces: list[Part] = [(f"{safe(note)}\n", "$warning") for note in change.notes]
    lines, old = diff_lines(change), ""
    for line in lines[:MOST_DIFFERENCE]:
        text, sign = safe(line.text), line.text[:4]
        # A note begins with two lines, `--- OLD` and `+++ NEW`; where NEW is "nothing" it goes.
        if line.kind == "file" and sign == "--- ":
            old = text[4:]
        elif line.kind == "file":
            name = text.removeprefix("+++ ")
            pieces.append((f"{old} goes\n" if name == "nothing" else f"{name}\n", "bold"))
        elif line.kind != "hunk":
            end = f"  <{line.end}>" if line.end and line.kind != "same" else ""
            lead = f"{line.new or line.old:>4} {marks[line.kind]} "
            for part in Content(f"{text}{end}").wrap(max(20, width - len(lead))) if width else (text + end,):
                pieces.append((f"{lead}{part}\n", styles[line.kind]))
                lead = " " * len(lead)
        # Dots stand between two places of a note, not below its name.
        elif pieces and pieces[-1][1] != "bold":
            pieces.append(("╌╌╌\n", "$foreground-muted"))
    if len(lines) > MOST_DIFFERENCE:
        pieces.append((f"and {plural(len(lines) - MOST_DIFFERENCE, 'more line')}\n", "$foreground-muted"))
    return Content.assemble(*pieces).rstrip()


# --- a folder without notes -----------------------------------------------------------------------------------------


def first_steps(plan: Plan) -> Content:
    """Return what to do in a folder without notes: two keys, as its host needs them."""
    folder = one_line(str(plan.roots.workspace))
    if codex.is_memory(plan.roots.workspace):
        host, how = "Codex", "Codex takes it into its memory when it next tidies up."
        words = "Add a line: it becomes a note of its own."
    elif claude_code.folders(plan.roots):
        host, how = "Claude Code", "Claude Code reads MEMORY.md at the start of a session, and the facts it names."
        words = "Add a line to today's log; n begins a fact with a title."
    else:
        host, how = "", "OpenClaw reads MEMORY.md and the logs of today and yesterday when a session starts."
        words = "Write the first line of today's log."
    connect = f"Connect {host or 'an agent'}, so that it asks these notes by itself."
    paragraphs = [
        Content.styled(f"No notes in {folder} yet.", "bold"),
        Content(f"This is a memory of {host}. {how}" if host else how),
        *(Content.assemble((f" {key} ", "reverse bold"), f"  {does}") for key, does in (("a", words), ("6", connect))),
        Content.styled(_ONLY_LOOKING, "$foreground-muted"),
    ]
    return Content("\n\n").join(paragraphs)
