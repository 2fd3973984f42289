"""Checkers of what the inbox says of notes: files, names, days, and the log as it lies on disk decide."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.inbox import findings, inputs
from memory_tui.inbox.checks import InboxInputs, examine
from memory_tui.inbox.entries import Suggestion, plain
from memory_tui.inbox.findings import InboxClaim
from memory_tui.notes.journal import Journal
from memory_tui.plan import Options
from memory_tui.providers.builtin import static_table
from memory_tui.recalls import recall_log
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry
from memory_tui.secrets import finder as secret_finder
from memory_tui.workspace.annotations import read_annotations
from tests.harness.claims import NOW, STILL, checks, kinds_below

KINDS: set[type] = kinds_below(InboxClaim)
TODAY = dt.datetime.fromtimestamp(NOW).astimezone().date()
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


@dataclass
class InboxCase:
    """One suggestion about the notes in a folder."""

    folder: Path
    suggestion: Suggestion
    inputs: InboxInputs
    journal: Journal

    @property
    def text(self) -> str:
        """The lines that it is about."""
        return self.at(str(self.suggestion.place))

    def at(self, place: str) -> str:
        """The lines at `path:first-last`."""
        path, _, lines = place.rpartition(":")
        first, _, last = lines.partition("-")
        return "\n".join(self.whole(path).split("\n")[int(first) - 1 : int(last or first)])

    def whole(self, path: str = "") -> str:
        return (self.folder / (path or self.suggestion.place.path)).read_text()


def day_of(path: str) -> dt.date | None:
    """The day in a name, by the calendar; None where there is none."""
    found = _DAY.search(path)
    try:
        return dt.date(*map(int, found.groups())) if found else None
    except ValueError:
        return None


@checks(findings.SecretFound)
def _secret(claim: findings.SecretFound, case: InboxCase) -> None:
    before, masked, after = case.suggestion.place.text.partition(secret_finder.MASK)
    assert masked
    hidden = case.text.removeprefix(before).removesuffix(after)
    assert len(hidden) >= 6
    assert not re.search(r"\s", hidden)
    assert claim.sort in secret_finder.kinds(case.text)


@checks(findings.NotUtf8)
def _encoding(claim: findings.NotUtf8, case: InboxCase) -> None:
    data = (case.folder / case.suggestion.place.path).read_bytes()
    assert claim.replaced == data.decode("utf-8", "replace").count("\ufffd") - data.count("\ufffd".encode())
    assert claim.utf16 is data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if claim.utf16:
        words = re.findall("[a-z]{4,}", data.decode("utf-16"))
        assert words
        assert not any(word.encode() in data for word in words)
    else:
        assert claim.replaced


@checks(findings.NotTrusted)
def _trust(claim: findings.NotTrusted, case: InboxCase) -> None:
    assert case.inputs.trust[case.suggestion.place.path] == claim.state


@checks(findings.PromotedThere)
def _promoted(claim: findings.PromotedThere, case: InboxCase) -> None:
    assert f"openclaw-memory-promotion:{claim.key}" in case.text
    above = case.whole().partition(case.text)[0]
    nights = re.findall(r"^## Promoted From Short-Term Memory \((.*)\)$", above, re.MULTILINE)
    assert claim.night == (nights[-1] if nights else "")


@checks(findings.LinesLost)
def _lost(claim: findings.LinesLost, case: InboxCase) -> None:
    path = case.suggestion.place.path
    [entry] = [entry for entry in case.journal.entries() if entry.id == claim.change]
    assert entry.at == claim.at
    before = case.journal.text(entry.files[0].before)
    assert before is not None
    there = case.whole().splitlines() if (case.folder / path).exists() else []
    missing = [line for line in before.decode().splitlines() if line.strip() and line not in there]
    assert claim.lines == len(missing)
    assert claim.gone is not (case.folder / path).exists()


@checks(findings.AnnotationIdle)
def _idle(claim: findings.AnnotationIdle, case: InboxCase) -> None:
    name, _, why = claim.cause.partition(": ")
    assert f"<!-- {name}:" in case.text
    assert why
    read = read_annotations([case.text], case.suggestion.place.path)
    assert not {"importance": read.importance, "trigger": read.triggers, "project": read.project}[name]


@checks(findings.InvalidDay)
def _invalid(claim: findings.InvalidDay, case: InboxCase) -> None:
    assert claim.day in case.suggestion.place.path
    day = day_of(case.suggestion.place.path)
    assert day is None or day.year < 100


@checks(findings.DayAhead)
def _ahead(claim: findings.DayAhead, case: InboxCase) -> None:
    day = day_of(case.suggestion.place.path)
    assert day is not None
    assert (day - TODAY).days == claim.days > 1


@checks(findings.SaidTwice)
def _twice(claim: findings.SaidTwice, case: InboxCase) -> None:
    def words(text: str) -> list[str]:
        return re.findall(r"[^\W_]+", re.sub(r"^\W*\d{1,2}:\d{2}\W", "", text.lower()))

    assert words(case.text) == words(case.at(claim.twin))
    assert claim.twin != str(case.suggestion.place)


@checks(findings.SaidAlmostTwice)
def _almost(claim: findings.SaidAlmostTwice, case: InboxCase) -> None:
    one, other = plain(case.text), plain(case.at(claim.twin))
    common = [0] * (len(other) + 1)
    for letter in one:
        diagonal = 0
        for at, against in enumerate(other, 1):
            diagonal, common[at] = common[at], diagonal + 1 if letter == against else max(common[at], common[at - 1])
    assert abs(claim.alike - 200 * common[-1] / (len(one) + len(other))) < 1e-6
    assert 88 <= claim.alike < 100


@checks(findings.CloseInMeaning)
def _close(claim: findings.CloseInMeaning, case: InboxCase) -> None:
    one, other = static_table().vectors([case.text, case.at(claim.twin)]).astype(float)
    assert abs(one @ other - claim.cosine) < 1e-4
    assert claim.cosine >= 0.9


def _values(case: InboxCase, subject: str, twin: str) -> tuple[str, str]:
    """What follows the subject in the line itself, and in its twin."""
    after = [re.split(re.escape(subject), text, maxsplit=1, flags=re.IGNORECASE) for text in (case.text, case.at(twin))]
    assert all(len(parts) == 2 for parts in after)
    return after[0][1], after[1][1]


@checks(findings.SaidOtherwise)
def _otherwise(claim: findings.SaidOtherwise, case: InboxCase) -> None:
    mine, theirs = _values(case, claim.subject, claim.twin)
    assert re.match(rf"\W*(is )?{re.escape(claim.value)}\b", mine)
    assert re.match(rf"\W*(is )?{re.escape(claim.other)}\b", theirs)
    assert claim.value != claim.other
    paths = case.suggestion.place.path, claim.twin.rpartition(":")[0]
    assert paths[0] != paths[1]
    assert not any(day_of(path) for path in paths)


@checks(findings.Outdated)
def _outdated(claim: findings.Outdated, case: InboxCase) -> None:
    mine, theirs = _values(case, claim.subject, claim.twin)
    assert re.match(rf"\W*(is )?{re.escape(claim.value)}\b", mine)
    assert re.match(rf"\W*(is )?{re.escape(claim.other)}\b", theirs)
    assert claim.other not in case.text
    day, own = day_of(claim.twin), day_of(case.suggestion.place.path)
    assert claim.day == str(day)
    assert own is None or (day is not None and own < day)


@checks(findings.DayPassed)
def _passed(claim: findings.DayPassed, case: InboxCase) -> None:
    assert claim.day in case.text
    assert (TODAY - dt.date.fromisoformat(claim.day)).days == claim.ago > 0
    assert not _DAY.search(case.suggestion.place.path)


@checks(findings.DayMoves)
def _moves(claim: findings.DayMoves, case: InboxCase) -> None:
    assert claim.words in case.text
    assert not _DAY.search(case.text)
    assert not _DAY.search(case.suggestion.place.path)


@checks(findings.PathGone)
def _gone(claim: findings.PathGone, case: InboxCase) -> None:
    assert claim.path in case.text
    there = {name.lower() for _, _, names in os.walk(case.folder) for name in names}
    assert Path(claim.path).name.lower() not in there


@checks(findings.Unlisted)
def _unlisted(claim: findings.Unlisted, case: InboxCase) -> None:
    path = case.suggestion.place.path
    assert path not in case.whole("MEMORY.md")
    assert f"({path})" in claim.line


@checks(findings.BeyondBudget)
def _beyond(claim: findings.BeyondBudget, case: InboxCase) -> None:
    """OpenClaw keeps 70 and 20 of 100 of its 20,000 characters."""
    kept = case.whole(claim.path).rstrip()
    assert len(kept) > 20_000
    assert claim.path == case.suggestion.place.path
    head, tail = kept[:14_000], kept[: len(kept) - 4_000]
    assert claim.first == head.count("\n") + 1 + (not head.endswith("\n"))
    assert claim.last == tail.count("\n")
    place = case.suggestion.place
    assert place.first <= claim.last
    assert place.last >= claim.first


@checks(findings.ToolOutput)
def _output(claim: findings.ToolOutput, case: InboxCase) -> None:
    signs = {"it holds colour codes of a terminal": "\x1b[", "it is the trace of an error": "Traceback (most recent"}
    assert signs[claim.cause] in case.text


@checks(findings.NeverDelivered)
def _never(claim: findings.NeverDelivered, case: InboxCase) -> None:
    path = case.suggestion.place.path
    day = day_of(path)
    assert day is not None
    assert (TODAY - day).days == claim.age
    logged = [json.loads(line) for line in recall_log.log_lines(recall_log.recall_log_path(case.folder))]
    assert len(logged) >= 20
    for entry in logged:
        assert path not in (entry["query"], *(hit["path"] for hit in entry["hits"]))


# --- the memory that produces them ---------------------------------------------------------------------------------

NOTES = {
    "MEMORY.md": (
        "# Home\n\n- wifi password: hunter2hunter2X9\n- renew the domain by 2026-01-01 please\n"
        "- currently the router is being replaced\n- see [the plan](gone.md) for it\n"
        "- the guest network is on VLAN 20, says anna\n- the printer in the hall wants blue ink from the shop\n"
        "- \x1b[31mfailed\x1b[0m to reach the server at all\n- tea <!-- importance: 12 -->\n- Cellar keeper: Bob\n\n"
        "## Promoted From Short-Term Memory (2026-01-08)\n\n"
        "<!-- openclaw-memory-promotion:k1 -->\n- the ferry leaves from pier three at ten\n"
    ),
    "memory/2026-01-05.md": "# Day\n\n- 10:00 The guest network is on VLAN 20, says anna\n",
    "memory/2026-01-06.md": "# Day\n\n- the printer in the hall wants black ink from the shop\n",
    "memory/2026-11-02.md": "# Day\n\n- Lead: Marcus Boyle\n",
    "memory/team.md": "# Team\n\n- Lead: Priya Raman\n- Cellar keeper: Anna\n",
    "memory/2026-02-30.md": "- a day that is none, and a note all the same\n",
    "memory/2031-01-01.md": "- a day to come, and a note all the same\n",
    "memory/one.md": "garlic bread cake with zebra stripes and omada antennas over the old wooden kitchen table\n",
    "memory/two.md": "table kitchen wooden old the over antennas omada and stripes zebra with cake bread garlic\n",
    "memory/fact.md": "a fact that the index of the other host does not name\n",
}
ENCODED = {
    "memory/western.md": "The Müller family moved to the Düne road\n".encode("cp1252"),
    "memory/wide.md": "The plumber mends taps on Friday afternoons\n".encode("utf-16"),
}
_DAY_TEXT = "# Day\n\n- 09:00 new firmware on the router\n- 10:00 the boiler was serviced\n- 11:00 lunch by the lake\n"


def logged(folder: Path) -> None:
    """Twenty recalls over three weeks, of which none delivered the older note."""
    place = recall_log.recall_log_path(folder)
    hit = LoggedHit("memory/2026-01-05.md", 1, 3, 0.5, 0.5, 0.5)
    for number in range(20):
        entry = RecallEntry("memory_search", "network", NOW - 86_400 * (21 - number), hits=(hit,))
        recall_log.append_recall(place, entry)


def made(place: Path) -> Iterator[tuple[InboxClaim, InboxCase]]:
    """Every suggestion about notes in which everything is wrong once."""
    folder = place / "notes"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for path, data in ENCODED.items():
        (folder / path).write_bytes(data)
    logged(folder)
    for profile in ("recommended", "openclaw-2026.9"):
        options = Options(
            workspace=str(folder),
            index=str(place / f"{profile}.sqlite"),
            provider="builtin",
            now=NOW,
            changes=(("profile", profile), *STILL),
        )
        with Engine.open(options) as engine:
            for text in (_DAY_TEXT, "# Day\n\n- 12:00 a session that knew nothing of them\n"):
                (folder / "memory/2026-01-07.md").write_text(text)
                engine.index.sync()
            curator = engine.notes.curator
            view = replace(
                inputs.view(engine.plan, NOW, engine.search.chunks(), None, curator, engine.notes.recalled_paths()),
                trust={"memory/one.md": "agent, edited since"},
                unlisted={"memory/fact.md": "- [Fact](memory/fact.md) — a fact"},
            )
            yield from _examined(folder, view, curator.journal)
    long = "# Home\n\n" + "".join(f"- fact {number} {'word ' * 198}\n" for number in range(25))
    (folder / "MEMORY.md").write_text(long)
    with Engine.open(options) as engine:
        yield from _examined(folder, inputs.view(engine.plan, NOW, None, None), engine.notes.curator.journal)


def _examined(folder: Path, inputs: InboxInputs, journal: Journal) -> Iterator[tuple[InboxClaim, InboxCase]]:
    for one in examine(inputs):
        yield one.finding, InboxCase(folder, one, inputs, journal)
