"""The agent programs that use this memory, and what they recalled in each turn, as the transcripts of their hosts tell.

A turn is what a person said, what the agent asked of the memory for it, and what it answered. A hit was quoted where
the answer shares four words in a row with it that no other hit has, nor the person said. Our own log has the knobs of
then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui import recall_log
from memory_tui.config.settings import BY_KEY, OWN_PROFILE, TUNE_KEYS, Settings
from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import minute, one_line, plural
from memory_tui.hosts import claude_code, connection, openclaw, transcripts, wiring
from memory_tui.hosts.connection import HOSTS, Host, host
from memory_tui.hosts.transcripts import HostSession, Said, ToolUse
from memory_tui.openclaw.agent_sessions import answer_in
from memory_tui.openclaw.prompt import GET, SEARCH, citation
from memory_tui.recall_log import IN_PART, Log, LoggedHit, RecallEntry, is_partial, replied, shortened

# --- what a program gets, what it asked last, and what failed last ---------------------------------------------------

_NAMED = 3
"""Settings that are named where two rankings differ; the rest is counted."""


class AgentProgram(Struct, frozen=True):
    """One agent program: its connection (None for none), and what its server gets.

    `profile` ranks its answers, empty where that is not known, and `difference` names the settings that differ here.
    `memory` is another workspace that its server serves, empty where it is this one. `lost` names what its files lost,
    `failed` is the newest recall that failed.
    """

    host: Host
    connection: connection.HostConnection | None
    profile: str
    difference: str
    memory: str
    lost: tuple[str, ...]
    failed: recall_log.RecallEntry | None
    problem: str = ""
    """Why it is not known what its server gets, or why it cannot be connected, as sentences."""

    @property
    def logs(self) -> bool:
        """Whether its server writes down what it is asked."""
        return self.connection is not None and wiring.LOG in self.connection.start.words


def rows(plan: plans.Plan) -> tuple[AgentProgram, ...]:
    """Return every agent program, once for each connection, or once without. Raises ConfigError, IndexUnavailable."""
    every = connection.every()
    programs: list[AgentProgram] = []
    for name in HOSTS:
        links: list[connection.HostConnection | None] = [link for link in every if link.host == name]
        programs += [_row(host(name), link, plan) for link in links or [None]]
    return tuple(programs)


def wiring_of(plan: plans.Plan, row: Host, scope: wiring.Scope, project: Path, *, log: bool) -> wiring.Wiring:
    """Return what the host `row` is to start to get the memory of `plan`. Raises MemoryTuiError.

    Our own profile ranks its answers, unless the command line of `plan` names another one; `log` has them logged.
    """
    changes = {"profile": OWN_PROFILE, **dict(plan.options.changes)}
    if row.name == "openclaw":
        arguments = openclaw.arguments(changes["profile"])
    else:
        options = replace(plan.options, workspace=str(plan.workspace), changes=tuple(changes.items()))
        arguments = tuple(wiring.words_of(options))
    return wiring.Wiring(scope, project, wiring.command(), arguments, changes["profile"], log)


def _row(row: Host, link: connection.HostConnection | None, plan: plans.Plan) -> AgentProgram:
    """Return how a host stands to the memory of `plan` by its connection `link`.

    Without a connection its `problem` says why it cannot be connected; empty where it can be.
    """
    lost: tuple[str, ...] = ()
    profile = difference = memory = problem = ""
    try:
        if link is None:
            # Called for what it raises: the edits are only planned here, and thrown away.
            row.edits(wiring_of(plan, row, "user", plan.workspace, log=False))
        else:
            lost = tuple(connection.wired(link))
            server_plan = plans.choose(_options(link))
            if server_plan.workspace.resolve() != plan.workspace.resolve():
                memory = str(server_plan.workspace)
            profile = server_plan.settings.word("profile")
            difference = _difference(server_plan.settings, plan.settings)
    except MemoryTuiError as error:
        problem = f"{error.message} {error.next_step}".rstrip()
    _, failed = newest(row, Path(memory) if memory else plan.roots.workspace)
    return AgentProgram(row, link, profile, difference, memory, lost=lost, failed=failed, problem=problem)


def newest(row: Host, workspace: Path) -> tuple[recall_log.RecallEntry | None, recall_log.RecallEntry | None]:
    """Return the newest query of an agent program in the log of `workspace`, and its newest query that failed.

    Either is None where there is no such query. Raises IndexUnavailable when the log cannot be read.
    """
    log = recall_log.read(recall_log.recall_log_path(workspace))
    queries = [entry for entry in log.entries if entry.tool == SEARCH and entry.client.startswith(row.client)]
    failed = [entry for entry in queries if entry.reply == "failed"]
    return queries[-1] if queries else None, failed[-1] if failed else None


def workspace_of(link: connection.HostConnection) -> Path:
    """Return the workspace that a connection's server serves. Raises MemoryTuiError."""
    return plans.choose(_options(link)).workspace


def _options(link: connection.HostConnection) -> plans.Options:
    """Return the options of a connection's server, by the command line that the connection recorded."""
    words = list(link.start.words)
    if link.host == "openclaw" and "--profile" in words:
        # The plugin reads its profile from openclaw.json, where it may have been edited since.
        option = words.index("--profile")
        # The option and its value.
        del words[option : option + 2]
    return wiring.options_of(words)


def _difference(agent: Settings, here: Settings) -> str:
    """Return in words which knobs have other values for an agent than `here`, the profile first; empty for none.

    So many as _NAMED are named by their labels, the rest is counted.
    """
    labels = [BY_KEY[key].label for key in TUNE_KEYS if agent.values[key].value != here.values[key].value]
    more = len(labels) - _NAMED
    return ", ".join(labels[:_NAMED]) + (f" and {more} more" if more > 0 else "")


# --- what was recalled in each turn ----------------------------------------------------------------------------------

_RUN = 4
"""So many words in a row that a passage and an answer share are a quotation: fewer may be chance."""
_MOST_NOTES = 10
"""Notes that `by_note` tells of, those that were recalled most."""
_NEAR = 2.0
"""Seconds by which a log and a transcript may differ about one recall."""


class TurnRecall(Struct, frozen=True):
    """One recall of a turn: `entry` is that of our log, or where that has none, what the transcript tells.

    `quoted` are the citations of the hits that the answer quotes. Where it quotes words that several hits have, nobody
    knows which hit was meant: `quoted` is empty then, and `similar` counts these hits. `confirmed` tells that the
    journal of OpenClaw's own memory has the recall, too.
    """

    entry: RecallEntry
    quoted: tuple[str, ...] = ()
    similar: int = 0
    confirmed: bool = False

    @property
    def use(self) -> str:
        """Say what became of it, in a few words."""
        if self.quoted:
            return f"quoted {', '.join(self.quoted)}"
        if self.similar:
            return f"quoted one of {plural(self.similar, 'hit')}"
        return "not quoted" if self.entry.hits else ""

    @property
    def used(self) -> frozenset[str]:
        """Return the notes that the answer quotes; all that were delivered where nobody can tell which of them."""
        quoted = frozenset(place.rpartition("#")[0] for place in self.quoted)
        return self.entry.delivered if self.similar or not self.entry.hits else quoted


class AgentTurn(Struct, frozen=True):
    """What a person said at `at`, and what the agent recalled for it; nothing where it did not ask.

    `knew` is the citation of what the memory would have answered to a turn without recalls; empty where it holds
    nothing for it, or was not asked afterwards.
    """

    at: float
    said: str
    recalls: tuple[TurnRecall, ...] = ()
    knew: str = ""


class SessionTurns(Struct, frozen=True):
    """The turns of one session, oldest first; `loaded` tells that our hook put memory before it."""

    host: str
    id: str
    agent: str
    loaded: bool
    turns: tuple[AgentTurn, ...]

    @property
    def title(self) -> str:
        """Name the session."""
        return " ".join(filter(None, (self.host, self.agent, self.id)))

    @property
    def sentence(self) -> str:
        """Say how much of the session went by without a question to the memory, and what became of the others."""
        asked = [turn for turn in self.turns if turn.recalls]
        used = sum(any(recall.quoted or recall.similar for recall in turn.recalls) for turn in asked)
        loaded = ", memory loaded at the start" if self.loaded else ""
        missed = sum(bool(turn.knew) for turn in self.turns)
        should = f", {missed} should have asked" if missed else ""
        return f"{plural(len(self.turns), 'turn')}: {len(asked)} asked the memory, {used} quoted it{should}{loaded}"


def sessions(workspace: Path, since: float) -> tuple[list[SessionTurns], list[str]]:
    """Return the sessions whose agents have the memory of `workspace`, the newest first, and what cannot be read.

    Raises IndexUnavailable where our log cannot be read.
    """
    log = recall_log.read(recall_log.recall_log_path(workspace))
    connected_hosts = _connected(workspace)
    all_sessions, problems = transcripts.sessions(since)
    has_openclaw = "openclaw" in {session.host for session in all_sessions}
    noted = transcripts.noted(workspace, since, problems) if has_openclaw else []
    # The journal of OpenClaw's own memory, in the form of our log.
    journal = Log(tuple(RecallEntry(SEARCH, shortened(query), at) for query, at in noted), 0)
    sessions = []
    for session in all_sessions:
        turns = tuple(_turns(session, log, journal))
        # An entry has an id where it is of our log, which is of this workspace alone.
        is_logged = any(recall.entry.id for turn in turns for recall in turn.recalls)
        if turns and (is_logged or session.host in connected_hosts or _is_of(session, workspace)):
            sessions.append(SessionTurns(session.host, session.id, session.agent, session.loaded, turns))
    return sorted(sessions, key=lambda session: -session.turns[-1].at), problems


def _connected(workspace: Path) -> set[str]:
    """Return the hosts that a connection for all of a user's sessions gives the memory of `workspace`."""
    hosts = set()
    for link in connection.every():
        try:
            if link.scope == "user" and workspace_of(link).samefile(workspace):
                hosts.add(link.host)
        except (MemoryTuiError, OSError):
            # The list of agents says what is wrong with it.
            continue
    return hosts


def _is_of(session: HostSession, workspace: Path) -> bool:
    """Return whether a session runs in a workspace, or in the project whose memory that is."""
    folder = Path(session.cwd or "/")
    real_workspace = workspace.resolve()
    return real_workspace in (folder.resolve(), *folder.resolve().parents) or (
        session.host == "claude-code" and claude_code.auto_memory(folder).resolve() == real_workspace
    )


def _turns(session: HostSession, log: Log, journal: Log) -> Iterator[AgentTurn]:
    """Yield the turns of a session: what a person said, with what follows until a person says something again.

    A session may begin with recalls before anybody spoke: these make a turn in which nothing was said.
    """
    said, uses, answer = Said(0.0, "user", ""), list[ToolUse](), list[str]()
    # An empty sentence at the end closes the last turn.
    for item in (*session.items, Said(0.0, "user", "")):
        if isinstance(item, ToolUse):
            # A host may put the name of the server before that of its tool.
            uses += [item] if re.search(r"(?:^|_)memory_(?:search|get)\Z", item.name) else []
        elif item.role != "user":
            answer.append(item.text)
        else:
            if said.text or uses:
                recalls = tuple(_recall(session, use, log, journal, said.text, "\n".join(answer)) for use in uses)
                yield AgentTurn(said.at or uses[0].at, shortened(said.text), recalls)
            said, uses, answer = item, [], []


def _recall(session: HostSession, use: ToolUse, log: Log, journal: Log, said: str, answer: str) -> TurnRecall:
    """Return the recall that `use` tells of, with what became of it in the `answer` to what a person `said`."""
    # A host keeps the answer of the memory as data, or only its text: a search has `results`, a read has `path`.
    result = use.details if {"results", "path"} & use.details.keys() else answer_in(use.text)
    # What memory_get read is one row by itself.
    rows = [row for row in result.get("results", [result]) if isinstance(row, dict)] if use.succeeded else []
    # What has no path is no passage.
    places = [(hit, row) for row in rows if (hit := recall_log.hit_of(row)).path]
    passages = [(hit, str(row.get("snippet") or row.get("text") or "")) for hit, row in places]
    quoted, similar = _quotations(passages, f"{said}\n{use.args.get('query')}", answer)
    entry = _entry(session, use, result, [hit for hit, _ in passages])
    logged = [recall for recall in log.entries if _is_same(recall, entry, use.end)]
    # Only OpenClaw's own agents are in its journal.
    confirmed = session.host == "openclaw" and any(_is_same(noted, entry, use.end) for noted in journal.entries)
    return TurnRecall(logged[-1] if logged else entry, quoted, similar, confirmed)


def _quotations(passages: Sequence[tuple[LoggedHit, str]], question: str, answer: str) -> tuple[tuple[str, ...], int]:
    """Return the citations of the passages that an answer quotes, and where there is none, how many it resembles.

    It quotes a text where it repeats a run of words that no other text has, nor the `question`: what a person said and
    the agent asked.
    """
    runs_of_question, runs_of_answer = _runs(question), _runs(answer)
    runs_of_texts = [_runs(text) - runs_of_question for _, text in passages]
    counts = Counter(run for runs in runs_of_texts for run in runs)
    repeated = [(hit, runs & runs_of_answer) for (hit, _), runs in zip(passages, runs_of_texts, strict=True)]
    quoted = [citation(hit.path, *hit.lines) for hit, runs in repeated if any(counts[run] == 1 for run in runs)]
    return tuple(quoted), 0 if quoted else len([runs for _, runs in repeated if runs])


def _entry(session: HostSession, use: ToolUse, result: Mapping[str, Any], hits: Sequence[LoggedHit]) -> RecallEntry:
    """Return what a transcript tells of a recall in the form of the log, without the knobs, which it does not know."""
    is_search = use.name.endswith(SEARCH)
    query = str(use.args.get("query" if is_search else "path") or "")
    answer_level = result.get("answerLevel")
    level = str(answer_level.get("level") or "") if isinstance(answer_level, dict) else ""
    mode = result.get("mode") if isinstance(result.get("mode"), str) else "by its transcript"
    lines_read = f"lines {hits[0].start_line} to {hits[0].end_line}" if hits else "nothing was read"
    failure = "" if use.succeeded else shortened(use.text)
    return RecallEntry(
        tool=SEARCH if is_search else GET,
        query=shortened(query),
        at=use.end,
        client=session.host,
        agent=session.agent,
        hits=tuple(hits) if is_search else (),
        # Only the sentence of an answer's level says that it is found in part: "found" is the word of the level itself.
        level=IN_PART if IN_PART in str(answer_level).lower() else level,
        mode=str(mode) if use.succeeded else "",
        outcome=failure if is_search or failure else lines_read,
        ms=(use.end - use.at) * 1000,
    )


def _is_same(logged: RecallEntry, entry: RecallEntry, end: float) -> bool:
    """Return whether `logged`, of a log, is the recall that a transcript tells as `entry`, and that ended at `end`.

    A log may have only a part of the query: then time and tool decide.
    """
    # Anywhere between the begin and the end of the call, give or take: our log has the begin.
    is_near = end - entry.ms / 1000 - _NEAR <= logged.at <= end + _NEAR
    return is_near and logged.tool == entry.tool and (logged.query == entry.query or is_partial(logged.query))


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return every _RUN words in a row of `text`; none where it has fewer words."""
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}


# --- words -----------------------------------------------------------------------------------------------------------


def recall_words(recall: TurnRecall) -> str:
    """Say what one recall asked, how well it was answered, what became of it, and by which ranking."""
    entry = recall.entry
    profile = entry.settings.get("profile")
    confirmed = " (confirmed)" if recall.confirmed else ""
    subject = f"read {entry.query}" if entry.tool == GET else f"asked {entry.query!r}{confirmed}"
    unknown = "" if entry.tool == GET else "ranking not logged"
    ranking = f"ranked by {profile}" if profile else unknown
    return one_line(", ".join(filter(None, (replied(entry), recall.use, subject, ranking))))


def by_note(sessions: Iterable[SessionTurns]) -> list[str]:
    """Return a line for each of the notes that were recalled most: how often it was recalled, and how often quoted."""
    recalls = [recall for session in sessions for turn in session.turns for recall in turn.recalls]
    recalled = Counter(path for recall in recalls for path in {hit.path for hit in recall.entry.hits})
    # What stands before the # of a citation is the path.
    quoted = Counter(place.rpartition("#")[0] for recall in recalls for place in recall.quoted)
    return [
        one_line(f"{path}: recalled {plural(times, 'time')}, quoted {quoted[path] or 'never'}")
        for path, times in recalled.most_common(_MOST_NOTES)
    ]


def listing(sessions: Sequence[SessionTurns], problems: Iterable[str]) -> Iterator[str]:
    """Yield the sessions with their turns, one a line, and what could not be read."""
    for session in sessions:
        yield one_line(f"{session.title}  {session.sentence}")
        for turn in session.turns:
            not_asked = f"did not ask; {turn.knew} answers it" if turn.knew else "did not ask"
            remark = "" if turn.recalls else not_asked
            yield f"  {minute(turn.at)}  {one_line(turn.said, 60)}  {one_line(remark)}".rstrip()
            yield from (f"    {recall_words(recall)}" for recall in turn.recalls)
    yield from by_note(sessions)
    yield from map(one_line, problems)
