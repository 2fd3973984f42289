"""A report is one file about one question. It has hits, sums, misses, profiles side by side and the doctor."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_tui import __version__
from memory_tui.core import secret_finder
from memory_tui.core.errors import SettingError
from memory_tui.core.formatting import age_words, minute, number, plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.explain import why, wording
from memory_tui.explain.matched_words import MatchedWords
from memory_tui.render.hit_text import age_of, perfect, score_bar
from memory_tui.search.evidence import Evidence
from memory_tui.search.trace import Candidate, Trace

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.engine.engine import Engine

MASK = "[secret masked]"
LOST = 10
"""Chunks that were not recalled of which a report tells."""
DAY = 86_400.0
OLDEST = 365.0
"""Days at the left edge of the picture; what is older stands there, what never fades at the right."""
WIDTH, HEIGHT, EDGE = 640, 240, 40


class ReportSection(Struct, frozen=True):
    """A heading with rows below it: the first names the columns. `lines` are shown as they stand, `picture` is SVG."""

    title: str
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()
    picture: str = ""


class QueryReport(Struct, frozen=True):
    """A report of one query: its head and its sections."""

    head: Sequence[str]
    sections: Sequence[ReportSection]


def make(
    engine: Engine,
    query: str,
    settings: Settings,
    checks: Sequence[Sequence[str]],
    *,
    days: int = 0,
    with_text: bool = False,
) -> QueryReport:
    """Ask `query` under `settings`, `days` from now, and every profile; `checks` are rows of the doctor.

    Raises QueryError, IndexUnavailable.
    """
    from memory_tui.engine.openclaw_answer import by_profile

    evidence = engine.queries.gather(query, now=engine.now() + days * DAY if days else None)
    trace = engine.queries.rank(evidence, settings)
    found = sections(trace, evidence, by_profile(engine, evidence, trace), checks, with_text=with_text)
    return QueryReport(heading(trace, engine.plan.roots.workspace.name), found)


def require_kind(out: Path) -> None:
    """Raise SettingError where `out` is named as neither HTML nor Markdown."""
    if out.suffix.lower() not in (".html", ".md"):
        raise SettingError(f"{out} is neither HTML nor Markdown.", "End the name in .html or .md.")


def save(report: QueryReport, out: Path, *, replace: bool) -> None:
    """Write `report` to `out`, HTML or Markdown by its name. Raises SettingError; then `out` is as it was."""
    from memory_tui.core import atomic

    require_kind(out)
    data = (page(report) if out.suffix.lower() == ".html" else markdown(report)).encode("utf-8", "replace")
    try:
        (atomic.replace_file if replace else atomic.create_file)(out, data)
    except FileExistsError:
        raise SettingError(f"{out} is there already.", "Give another name.") from None
    except OSError as error:
        raise SettingError(f"{out} cannot be written: {error.strerror}.", "Name a file in a folder of yours.") from None


def masked(text: str) -> str:
    """`text` with its secrets masked, safe to show."""
    return safe(secret_finder.masked(secret_finder.redact(text), lambda _secret: MASK), keep_newlines=True)


def sections(
    trace: Trace,
    evidence: Evidence,
    profiles: Mapping[str, Trace],
    checks: Sequence[Sequence[str]],
    *,
    with_text: bool,
) -> list[ReportSection]:
    """What a report says, in order; text of notes only `with_text`, and never a secret."""
    found = [
        ReportSection("Recalled", [("#", "score", "age", "note"), *_hits(trace)], picture=_scatter(trace)),
        ReportSection("How each score came about", lines=list(_sums(trace, evidence))),
    ]
    if with_text:
        found.append(ReportSection("What the agent reads", lines=list(_texts(trace))))
    if trace.lost:
        rows = [
            (number(hit.score), one_line(hit.chunk.citation), wording.reason(hit.verdict)) for hit in trace.lost[:LOST]
        ]
        found.append(ReportSection(f"Not recalled: {len(trace.lost):,} chunks", [("score", "note", "why not"), *rows]))
    if len(profiles) > 1:
        found.append(ReportSection("Profiles side by side", list(_sides(profiles))))
    found.append(ReportSection("Doctor", [("state", "check", "what was found"), *checks]))
    return found


def _hits(trace: Trace) -> Iterator[tuple[str, ...]]:
    for place, hit in enumerate(trace.recalled, 1):
        age = age_words(age_of(hit, trace.now))
        yield str(place), number(hit.score), age, one_line(hit.chunk.citation)


def _sums(trace: Trace, evidence: Evidence) -> Iterator[str]:
    scale = perfect(trace)
    for place, hit in enumerate(trace.recalled, 1):
        bar = "".join(text for text, _ in score_bar(hit, scale, 20))
        yield f"{place}. {one_line(hit.chunk.citation)}  {bar}"
        terms = why.terms_line(evidence.texts.get(hit.chunk.rowid, ""), trace, chunk=hit.chunk, say_how=place == 1)
        for line in (*why.explain(hit, trace), terms):
            value = f"{line.operation or ' '} {line.value:.{line.digits}f}" if line.value is not None else ""
            yield masked(f"     {line.label:<8} {value:<11} {one_line(line.detail)}".rstrip())


def _texts(trace: Trace) -> Iterator[str]:
    words = MatchedWords.of(trace)
    for place, hit in enumerate(trace.recalled, 1):
        yield f"{place}. {one_line(hit.chunk.citation)}"
        for line in masked(hit.snippet).strip("\n").split("\n"):
            drawn, at = "     ", 0
            for start, end in words.spans(line):
                drawn += f"{line[at:start]}‹{line[start:end]}›"
                at = end
            yield drawn + line[at:]


def _sides(profiles: Mapping[str, Trace]) -> Iterator[tuple[str, ...]]:
    yield ("note", *profiles)
    places: dict[str, dict[str, int]] = {}
    for name, trace in profiles.items():
        for place, hit in enumerate(trace.recalled, 1):
            places.setdefault(one_line(hit.chunk.citation), {})[name] = place
    for note, own in places.items():
        yield (note, *(str(own.get(name, "-")) for name in profiles))


def _scatter(trace: Trace) -> str:
    """Score against age as SVG, a point a chunk; the table above it says the same in figures."""
    seen = [*trace.recalled, *trace.lost[:100]]
    top = max([perfect(trace), *(hit.score for hit in seen)])

    def at(hit: Candidate) -> tuple[float, float]:
        days = age_of(hit, trace.now)
        share = 1.0 if days is None else 1.0 - min(max(days, 0.0), OLDEST) / OLDEST * 0.95
        return EDGE + share * (WIDTH - 2 * EDGE), HEIGHT - EDGE - max(0.0, hit.score) / top * (HEIGHT - 2 * EDGE)

    points = []
    for hit in seen:
        x, y = at(hit)
        kind = "in" if hit in trace.recalled else "out"
        name = html.escape(f"{one_line(hit.chunk.citation)} {number(hit.score)}")
        points.append(f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="4"><title>{name}</title></circle>')
    least = trace.floor
    y = HEIGHT - EDGE - max(0.0, least) / top * (HEIGHT - 2 * EDGE)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Score against age">'
        f'<line x1="{EDGE}" y1="{y:.0f}" x2="{WIDTH - EDGE}" y2="{y:.0f}" class="gate"/>'
        f'<text x="{EDGE}" y="{y - 4:.0f}">minScore {least:.2f}</text>'
        f'<text x="{EDGE}" y="{HEIGHT - 12}">a year and older</text>'
        f'<text x="{WIDTH - EDGE}" y="{HEIGHT - 12}" text-anchor="end">today, never fades</text>{"".join(points)}</svg>'
    )


def heading(trace: Trace, workspace: str) -> list[str]:
    """The question, and what it was asked of."""
    chunks, notes = plural(trace.funnel.chunks, "chunk"), plural(trace.funnel.files, "note")
    return [
        masked(one_line(trace.query)),
        f"{one_line(workspace)}, {minute(trace.now)}: "
        f"{plural(len(trace.recalled), 'hit')} of {chunks} in {notes} with text, "
        f"profile {trace.profile}, memory-tui {__version__}",
    ]


def markdown(report: QueryReport) -> str:
    """The report as Markdown."""
    parts = [f"# {report.head[0]}", *report.head[1:]]
    for section in report.sections:
        parts.append(f"## {section.title}")
        if section.rows:
            first, *rows = [[cell.replace("|", "\\|") for cell in row] for row in section.rows]
            table = [first, ["---"] * len(first), *rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in table))
        if section.lines:
            fence = "```" if not any("```" in line for line in section.lines) else "~~~~"
            parts.append("\n".join([fence, *section.lines, fence]))
    return "\n\n".join(parts) + "\n"


_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#10151c;
background:#fbfbf9}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;
border-bottom:1px solid #d5d7da}pre{background:#f0efea;padding:.8rem;overflow:auto}svg{max-width:100%}
.in{fill:#146330}.out{fill:#fff;stroke:#525c69}.gate{stroke:#0b5cad;stroke-dasharray:4}text{font-size:11px;fill:#525c69}
@media(prefers-color-scheme:dark){body{color:#d7dce4;background:#12151b}pre{background:#1d222c}
td,th{border-color:#39424f}.in{fill:#6bd08b}.out{fill:#12151b;stroke:#a7b0bf}text{fill:#a7b0bf}}"""


def page(report: QueryReport) -> str:
    """The report as one HTML file that needs no other and loads nothing."""
    head = report.head
    parts = [
        "<!doctype html>",
        '<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{html.escape(head[0])}</title><style>{_STYLE}</style>",
        f"<h1>{html.escape(head[0])}</h1>",
        *(f"<p>{html.escape(line)}</p>" for line in head[1:]),
    ]
    for section in report.sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        if section.rows:
            first, *rows = section.rows
            parts.append("<table><tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in first) + "</tr>")
            parts += ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
            parts.append("</table>")
        parts.append(section.picture)
        if section.lines:
            parts.append("<pre>" + html.escape("\n".join(section.lines)) + "</pre>")
    return "\n".join(filter(None, parts)) + "\n</html>\n"
