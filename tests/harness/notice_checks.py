"""Checkers of notices, and the memories that produce each: what is on disk, in the store, or asked anew decides."""

from __future__ import annotations

import datetime as dt
import errno
import io
import json
import os
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import notices, plan, release_differences
from memory_tui.config import places
from memory_tui.core import files, locks, profiles, tokens
from memory_tui.core.errors import IndexBusy, ProviderError, WorkspaceError
from memory_tui.core.secret_finder import find as secrets_in
from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.engine.freshness_check import NotesVanished, RebuildWaits
from memory_tui.engine.open_index import EXTENSION, named_extension
from memory_tui.index import abilities, index_file
from memory_tui.notices import Notice
from memory_tui.openclaw import agent_sessions
from memory_tui.plan import Options, choose
from memory_tui.providers import scripted
from memory_tui.providers.builtin import static_table
from memory_tui.providers.chain import ChainMember
from memory_tui.search import second_stage
from memory_tui.search.evidence import later
from memory_tui.search.rank import rank
from memory_tui.search.trace import FoundByMeaningAlone, WaitingHolds
from tests.harness.claims import NOW, STILL, Case, World, checks, is_held, kinds_below
from tests.support.provider_server import serving

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KINDS: set[type] = kinds_below(Notice)
SECRET = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
"""A made-up key in the format of GitHub's."""


@dataclass
class NoticeCase(Case):
    """A notice that an answer or the status of a memory gave; `later_days` where the ages are moved."""

    later_days: float = 0.0

    def holding(self, word: str) -> int:
        """How many chunks hold a word."""
        return sum(is_held(text, word) for text in self.world.texts.values())


# --- what OpenClaw does otherwise ----------------------------------------------------------------------------------


@checks(release_differences.EmptiedThere)
def _emptied(claim: release_differences.EmptiedThere, case: NoticeCase) -> None:
    assert profiles.get(claim.profile).faults
    assert case.trace.profile == claim.profile
    with case.world.engine.queries.reader() as store:
        identity = store.identity()
    assert identity is None or not identity.dims


@checks(release_differences.FirstSearchThere)
def _first(claim: release_differences.FirstSearchThere, case: NoticeCase) -> None:
    assert profiles.get(claim.profile).faults
    assert case.trace.profile == claim.profile
    again = case.world.engine.queries.gather(case.evidence.query)
    said = [one for one in rank(again, case.settings).notices if isinstance(one, release_differences.FirstSearchThere)]
    assert not said, "only the first"


@checks(release_differences.ZeroVectors)
def _zeros(claim: release_differences.ZeroVectors, case: NoticeCase) -> None:
    found = static_table().vectors(list(case.world.texts.values()))
    assert claim.count == sum(not vector.any() for vector in found)
    assert claim.profile == (case.trace.profile if profiles.get(case.trace.profile).exact_paths else "")


@checks(release_differences.OtherVectors)
def _other_vectors(claim: release_differences.OtherVectors, case: NoticeCase) -> None:
    assert claim.profile == case.trace.profile != profiles.OWN
    assert claim.provider == case.trace.provider in ("builtin", "onnx")
    assert case.trace.mode != "keywords only"


@checks(release_differences.CutOtherwise)
def _cut_otherwise(claim: release_differences.CutOtherwise, case: NoticeCase) -> None:
    assert claim.profile == case.trace.profile
    with case.world.engine.queries.reader() as store:
        assert claim.chunking == store.chunking() != profiles.get(claim.profile).chunking


@checks(release_differences.TrustUnread)
def _unread(claim: release_differences.TrustUnread, case: NoticeCase) -> None:
    assert profiles.get(case.trace.profile).exact_paths
    file = places.state_database()
    assert str(file) in claim.detail
    assert not file.read_bytes().startswith(b"SQLite format 3")
    assert "own database" in claim.next_step


@checks(release_differences.NeverRecalledThere)
def _never(claim: release_differences.NeverRecalledThere, case: NoticeCase) -> None:
    assert claim.profile == case.trace.profile
    open_wide = case.settings.update({"query.maxResults": 50, "query.minScore": 0.0}, "harness")
    hits = {hit.chunk.citation for hit in case.under(open_wide).recalled}
    assert claim.citations
    for ref in (case.evidence.refs[row] for row in range(case.evidence.chunks)):
        if ref.citation in claim.citations:
            assert ref.citation not in hits
            assert re.search(r"<!--\s*project", case.world.texts[ref.rowid])
    assert set(claim.citations) <= {case.evidence.refs[row].citation for row in range(case.evidence.chunks)}


# --- the question --------------------------------------------------------------------------------------------------


@checks(notices.WordsUnknown)
def _unknown(claim: notices.WordsUnknown, case: NoticeCase) -> None:
    assert not static_table().vectors([case.evidence.query])[0].any()
    assert claim.recalled == len(case.trace.recalled)


@checks(notices.LanguageUnknown)
def _language(claim: notices.LanguageUnknown, case: NoticeCase) -> None:
    assert case.evidence.provider == "builtin"
    languages = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
    scripts = {unicodedata.name(one).split()[0] for one in case.evidence.query if one.isalpha()}
    assert claim.language in {languages.get(one, one.title()) for one in scripts}
    assert claim.known == (static_table().known(case.evidence.query) if claim.known else 0.0) < 0.75
    assert claim.known or all(not hit.vector.points for hit in case.trace.recalled)


@checks(notices.NotTranslated)
def _translated(claim: notices.NotTranslated, case: NoticeCase) -> None:
    assert case.evidence.provider == "builtin"
    words = re.findall(r"[^\W\d_]+", case.evidence.query)
    assert list(claim.words) == [word for word in words if not unicodedata.name(word[0]).startswith("LATIN")]
    assert not any(word in text for word in claim.words for text in case.world.texts.values())


@checks(notices.SearchedOtherwise)
def _searched(claim: notices.SearchedOtherwise, case: NoticeCase) -> None:
    one, texts = claim.correction, case.world.texts.values()
    assert one.asked.lower() in case.evidence.query.lower()
    assert one.also or not any(is_held(text, one.asked) for text in texts)
    assert all(any(word in text.lower() for text in texts) for word in one.searched)
    assert set(one.searched) <= set(case.trace.plan.words)


@checks(notices.AskedInParts)
def _parts(claim: notices.AskedInParts, case: NoticeCase) -> None:
    at = [case.evidence.query.find(part) for part in claim.parts]
    assert len(at) > 1
    assert min(at) >= 0
    assert at == sorted(set(at))
    for part in claim.parts:
        assert any(word in part.lower() for word in case.evidence.recommended.plan.words)
    inside = [hit.second for hit in case.trace.recalled if hit.second and hit.second.measures]
    assert all(one.asked in claim.parts for one in inside)
    first = case.trace.recalled[: len(claim.parts)]
    for part in claim.parts:
        own = [hit for hit in case.trace.recalled if hit.second and hit.second.asked == part]
        best = max((hit.score for hit in own), default=0.0)
        assert not own or any(hit in first and hit.score == best for hit in own), "the best of each part comes first"


@checks(notices.ReadAsTime)
def _time(claim: notices.ReadAsTime, case: NoticeCase) -> None:
    plan = case.trace.plan
    assert claim.words in case.evidence.query
    assert claim.days == str(plan.time)
    days = [dt.date.fromisoformat(day) for day in re.findall(r"\d{4}-\d\d-\d\d", claim.days)]
    assert days == sorted(days)
    searched = set(re.findall(r"\w+", claim.words.lower())) & set(plan.words)
    rest = case.evidence.query.replace(claim.words, "")
    assert claim.alone == (not re.search(r"\w", rest))
    assert claim.alone or not searched


@checks(notices.LongQuestion)
def _long(claim: notices.LongQuestion, case: NoticeCase) -> None:
    assert claim.different == len(set(re.findall(r"\w+", case.evidence.query)))
    held = {word for word in re.findall(r"\w+", case.evidence.query.lower()) if case.holding(word)}
    assert claim.different > claim.rarest >= len(held) or len(held) > claim.rarest
    looked_for = set(case.evidence.recommended.plan.words)
    assert len(looked_for) == max(1, min(claim.rarest, len(held)))
    if held:
        most = max(case.holding(word) for word in looked_for)
        assert all(word in looked_for or case.holding(word) >= most for word in held)
    assert claim.first >= len(case.evidence.openclaw.plan.words)
    assert (claim.rarest, claim.first) == (tokens.MOST_ALTERNATIVES, tokens.MOST_WORDS)
    assert len(case.evidence.openclaw.plan.words) <= claim.first


@checks(notices.TimeFromToday)
def _today(claim: notices.TimeFromToday, case: NoticeCase) -> None:
    import datetime as dt

    assert claim.today == dt.datetime.fromtimestamp(NOW, dt.UTC).date().isoformat()
    assert case.later_days
    assert case.evidence.now == NOW + case.later_days * 86_400


@checks(notices.UnevenWeights)
def _weights(claim: notices.UnevenWeights, case: NoticeCase) -> None:
    values = case.settings.values
    assert claim.vector == values["query.hybrid.vectorWeight"].value
    assert claim.text == values["query.hybrid.textWeight"].value
    assert claim.vector_origin == values["query.hybrid.vectorWeight"].origin
    assert claim.text_origin == values["query.hybrid.textWeight"].origin
    whole = claim.vector + claim.text
    assert abs(whole - 1) > 1e-9
    assert abs(claim.vector_counts - claim.vector / whole) < 1e-9
    assert abs(claim.text_counts - claim.text / whole) < 1e-9


@checks(notices.QuestionWithheld)
def _question_withheld(claim: notices.QuestionWithheld, case: NoticeCase) -> None:
    assert case.evidence.cosine is None
    assert set(claim.kinds) == {found.kind for found in secrets_in(case.evidence.query)}
    assert claim.kinds
    assert claim.host.split(":")[0] in str(case.world.engine.plan.config.entries["remote.baseUrl"].value)


@checks(FoundByMeaningAlone)
def _meaning_alone(claim: FoundByMeaningAlone, case: NoticeCase) -> None:
    recalled = case.trace.recalled
    assert claim.hits == len(recalled)
    assert claim.near == sum(hit.vector.cosine is not None and hit.vector.cosine > 0 for hit in recalled)
    assert claim.dated == sum(hit.date_points > 0 for hit in recalled)
    assert claim.plan.words
    for word in set(claim.plan.words) - set(claim.plan.elsewhere.uncut):
        assert not any(is_held(text, word) for text in case.world.texts.values()), word


@checks(WaitingHolds)
def _waiting_holds(claim: WaitingHolds, case: NoticeCase) -> None:
    word, path = claim.elsewhere.held[0]
    assert is_held((case.world.folder / path).read_text(), word)
    assert not any(is_held(text, word) for text in case.world.texts.values())


# --- what answers --------------------------------------------------------------------------------------------------


@checks(notices.MeaningOff)
def _meaning_off(claim: notices.MeaningOff, case: NoticeCase) -> None:
    assert case.evidence.cosine is None
    provider, _ = provider_of(case.world.engine)
    with pytest.raises(ProviderError) as failure:
        provider.embed([case.evidence.query], "query")
    assert (failure.value.message, failure.value.next_step) == (claim.cause, claim.remedy)


@checks(notices.OtherModel)
def _other_model(claim: notices.OtherModel, case: NoticeCase) -> None:
    assert case.evidence.cosine is None
    provider, made = provider_of(case.world.engine)
    assert claim.made_with == f"{made.provider} {made.model}"
    assert claim.asked_with == f"{provider.identity.provider} {provider.identity.model}" != claim.made_with


@checks(notices.AnsweredOtherwise)
def _answered(claim: notices.AnsweredOtherwise, case: NoticeCase) -> None:
    who = claim.who
    assert who.requested == case.world.engine.plan.provider
    assert who.standing not in ("ok", "off", "not asked", "not indexed")
    assert case.evidence.cosine is None or who.answers != who.requested


@checks(notices.NoFullText)
def _no_full_text(claim: notices.NoFullText, case: NoticeCase) -> None:
    with case.world.engine.queries.reader() as store:
        assert not store.words.cut()
    assert claim.reason == abilities.fts5()
    if claim.by_text is not None:
        assert claim.by_text == (case.evidence.cosine is None)


@checks(notices.PassagesByWords)
def _by_words(claim: notices.PassagesByWords, case: NoticeCase) -> None:
    with pytest.raises(ProviderError) as failure:
        second_stage.passage_table()
    assert failure.value.message == claim.problem
    looked_into = [hit.second for hit in case.trace.recalled if hit.second is not None]
    assert looked_into
    assert not any("meaning" in one.name for part in looked_into for one in part.measures)


# --- the index -----------------------------------------------------------------------------------------------------


def indexed(engine: Engine) -> set[str]:
    with engine.queries.reader() as store, engine.queries.state(store) as known:
        return set(known.corpus.files.paths)


def provider_of(engine: Engine) -> Any:
    """Who would embed a question for this index, and the space of the index."""
    with engine.queries.reader() as store:
        made = store.identity()
    return engine.queries._chain.of_space(made), made


@checks(NotesVanished)
def _vanished(claim: NotesVanished, case: NoticeCase) -> None:
    known = indexed(case.world.engine)
    there = {path for path in known if (case.world.folder / path).exists()}
    assert (claim.missing, claim.known) == (len(known - there), len(known))
    assert str(claim.missing) in claim.reason


@checks(RebuildWaits)
def _rebuild(claim: RebuildWaits, case: NoticeCase) -> None:
    assert claim.reasons
    values = {str(one.value) for one in case.world.engine.plan.settings.values.values()}
    _, made = provider_of(case.world.engine)
    now = {*values, *({made.model} if made else ()), "other"}
    assert all(reason.split(" is now ")[1] in now for reason in claim.reasons)
    assert all(reason.split(" is now ")[0].split(": ")[1] != reason.split(" is now ")[1] for reason in claim.reasons)
    assert claim.failed == (case.world.engine.providers.who().standing == "failed")


@checks(notices.BatchWaits)
def _batch(claim: notices.BatchWaits, case: NoticeCase) -> None:
    status = case.world.engine.status()
    assert claim.texts == status.chunks - status.embedded > 0


@checks(notices.VectorsRefused)
def _refused(claim: notices.VectorsRefused, case: NoticeCase) -> None:
    with case.world.engine.queries.reader() as store:
        refused = store.rejected()
    assert claim.chunks == len(refused) > 0
    assert set(claim.reasons) == {one.reason for one in refused}


@checks(index_file.OnSharedFiles)
def _on_shared(claim: index_file.OnSharedFiles, case: NoticeCase) -> None:
    """The last mount of the longest folder above it, read by hand."""
    mounts = [line.split() for line in files._MOUNTS.read_text().splitlines()]
    above = [one for one in mounts if Path(claim.path).is_relative_to(one[4])]
    deepest = max(len(one[4]) for one in above)
    assert [one for one in above if len(one[4]) == deepest][-1][one_after(above[-1], "-")] == claim.system
    assert claim.system in {"nfs4", "9p", "virtiofs", "cifs"}


def one_after(fields: list[str], sign: str) -> int:
    return fields.index(sign) + 1


@checks(index_file.KeptElsewhere)
def _kept_elsewhere(claim: index_file.KeptElsewhere, case: NoticeCase) -> None:
    with pytest.raises(OSError) as error:  # noqa: PT011, PT012 - whatever the system says, wherever
        Path(claim.path).parent.mkdir(exist_ok=True)
        Path(claim.path).touch()
    assert error.value.strerror is not None
    assert error.value.strerror in claim.why
    assert case.world.engine.plan.index == Path(claim.path)
    assert raw(claim.place, "SELECT count(*) FROM chunks") == len(NOTES)


@checks(index_file.NotCopied)
def _not_copied(claim: index_file.NotCopied, case: NoticeCase) -> None:
    """What cannot be copied cannot be read; what takes its place was made of the notes."""
    with pytest.raises(sqlite3.DatabaseError) as error:
        raw(claim.path, "SELECT count(*) FROM chunks")
    assert str(error.value) == claim.why
    assert raw(claim.place, "SELECT count(*) FROM chunks") == len(NOTES)


@checks(index_file.IndexGone)
def _gone(claim: index_file.IndexGone, case: NoticeCase) -> None:
    assert case.world.engine.plan.index == Path(claim.path)
    uuid = "SELECT value FROM meta WHERE key = 'uuid'"
    assert raw(f"{claim.path}.was", "SELECT count(*) FROM chunks") > 0, "there was one"
    assert raw(f"{claim.path}.was", uuid) != raw(claim.path, uuid)


@checks(index_file.MovedAside)
def _moved_aside(claim: index_file.MovedAside, case: NoticeCase) -> None:
    with pytest.raises(sqlite3.DatabaseError):
        raw(claim.kept, "PRAGMA quick_check(1)")
    assert Path(claim.kept).parent == Path(claim.path).parent
    assert raw(claim.path, "PRAGMA quick_check(1)") == "ok"
    assert claim.path in claim.why
    assert "damaged" in claim.why or "not a database" in claim.why


@checks(index_file.IndexNotUsed)
def _not_used(claim: index_file.IndexNotUsed, case: NoticeCase) -> None:
    """Somebody else holds the lock of its writer, or it cannot be read."""
    index = Path(claim.path)
    assert index.is_file()
    held = locks.WriterLock.acquire(index)
    if held is not None:
        held.release()
    assert (held is None) == (claim.error == IndexBusy.code)
    assert (f"Process {os.getpid()} " if held is None else claim.path) in claim.said


def raw(path: str, sql: str) -> Any:
    """The one value of a statement, by the SQLite of Python."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchone()[0]


@checks(agent_sessions.MessagesNotRead)
def _messages(claim: agent_sessions.MessagesNotRead, case: NoticeCase) -> None:
    """Each long record by itself: what is no zstd of JSON counts."""

    def fails(data: bytes) -> bool:
        try:
            json.loads(zstd.decompress(data))
        except (zstd.ZstdError, ValueError):
            return True
        return False

    with closing(sqlite3.connect(f"file:{claim.database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT event_zstd FROM transcript_events WHERE event_json IS NULL").fetchall()
    assert claim.messages == sum(fails(data) for (data,) in rows) > 0


@checks(agent_sessions.SessionsNotRead)
def _sessions(claim: agent_sessions.SessionsNotRead, case: NoticeCase) -> None:
    with pytest.raises(sqlite3.Error):
        raw(claim.database, "SELECT count(*) FROM session_windows")
    assert Path(claim.database).is_file()
    assert claim.detail.endswith(".")


@checks(agent_sessions.TranscriptsNotWritten)
def _transcripts(claim: agent_sessions.TranscriptsNotWritten, case: NoticeCase) -> None:
    with pytest.raises(OSError) as error:  # noqa: PT011 - whatever the system says
        Path(claim.folder).mkdir(parents=True)
    assert error.value.strerror == claim.reason


@checks(notices.RootLost)
def _root(claim: notices.RootLost, case: NoticeCase) -> None:
    assert claim.path in claim.detail
    assert claim.state == "gone"
    assert not os.path.lexists(claim.path)


# --- this machine --------------------------------------------------------------------------------------------------


@checks(notices.ConfigProblem)
def _config(claim: notices.ConfigProblem, case: NoticeCase) -> None:
    """The line holds the key; without the entry nothing is said of it, and all settings are what they are."""
    path = case.world.engine.plan.config.path
    assert path is not None
    assert str(path) == claim.file
    name = claim.key.rpartition(".")[2]
    assert name in path.read_text().split("\n")[claim.line - 1]
    assert f"{path.name} line {claim.line}, " in claim.said
    assert claim.key in claim.said
    assert "used" in claim.said or "counts" in claim.said
    tree = json.loads(path.read_text())
    section = tree
    for part in claim.key.split(".")[:-1]:
        section = section[part]
    del section[name]
    other = path.with_name("without.json")
    other.write_text(json.dumps(tree))
    plan_now, without = case.world.engine.plan, choose(replace(case.world.engine.plan.asked, config=str(other)))
    assert claim.key not in {problem.key for problem in without.config.found}
    assert {key: one.value for key, one in without.settings.values.items()} == {
        key: one.value for key, one in plan_now.settings.values.items()
    }


@checks(notices.SettingIgnored)
def _setting(claim: notices.SettingIgnored, case: NoticeCase) -> None:
    plan = case.world.engine.plan
    assert claim.profile == case.trace.profile
    assert claim.key in dict(plan.asked.changes)
    other = replace(plan.asked, changes=tuple(one for one in plan.asked.changes if one[0] != claim.key))
    without = choose(other).settings
    assert rank(case.evidence, without).recalled == case.trace.recalled


@checks(notices.NoTrigrams)
def _no_trigrams(claim: notices.NoTrigrams, case: NoticeCase) -> None:
    with case.world.engine.queries.reader() as store:
        assert store.words.cut() == "unicode61"
    assert case.world.engine.plan.settings.word("store.fts.tokenizer") == "trigram"
    assert claim.reason == abilities.trigram()


@checks(notices.NumpyCompares)
def _numpy(claim: notices.NumpyCompares, case: NoticeCase) -> None:
    status = case.world.engine.status()
    assert not status.vector.available
    assert claim.reason == status.vector.load_error
    assert case.world.engine.plan.settings.on("store.vector.enabled")


@checks(notices.MediaNotRead)
def _media(claim: notices.MediaNotRead, case: NoticeCase) -> None:
    plan = case.world.engine.plan
    assert plan.config.value("multimodal.enabled") is True
    assert plan.roots.media is None
    assert plan.provider != "gemini"
    assert claim.reason == (
        f"Images and sounds need the provider gemini, not {plan.provider}, with the model gemini-embedding-2."
    )


@checks(notices.ExtensionNotRun)
def _extension(claim: notices.ExtensionNotRun, case: NoticeCase) -> None:
    engine = case.world.engine
    named, where = named_extension(engine.plan)
    assert named in claim.reason
    assert where in claim.reason
    assert engine.providers.approvals.find(EXTENSION, named) is None
    assert engine.status().vector.available, "the installed one serves"


@checks(notices.UnknownSwitch)
def _switch(claim: notices.UnknownSwitch, case: NoticeCase) -> None:
    assert claim.name in re.split(r"[\s,;]+", os.environ[claim.switch])
    assert claim.name not in claim.known
    assert set(claim.known) == {"fts5", "trigram", "vec0"}


# --- the memories that produce them --------------------------------------------------------------------------------

NOTES = MappingProxyType(
    {
        "MEMORY.md": "the router omada stands in the closet\n",
        "memory/plan.md": "vlan deploy on friday, anna said\n",
        "memory/cake.md": "a cake recipe with garlic\n",
    }
)
Made = Iterator[tuple[Notice, NoticeCase]]


def write(folder: Path, texts: Any) -> None:
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def opened(place: Path, profile: str = "recommended", provider: str = "builtin", **more: Any) -> Engine:
    changes = {**dict(STILL), "profile": profile, **more.pop("changes", {})}
    index = more.pop("index", str(place / "index.sqlite"))
    return Engine.open(
        Options(
            workspace=str(place / "notes"),
            index=index,
            provider=provider,
            now=NOW,
            changes=tuple(changes.items()),
            **more,
        )
    )


def asked(place: Path, engine: Engine, query: str, settings: Settings | None = None, days: float = 0.0) -> Made:
    """Every notice of one answer."""
    settings = settings or engine.plan.settings
    evidence = engine.queries.gather(query)
    with engine.queries.reader() as store:
        texts = store.texts([evidence.refs[row].rowid for row in range(evidence.chunks)])
    if days:
        evidence = later(evidence, days)
    world = World("notices", engine, place / "notes", texts, [query])
    trace = rank(evidence, settings)
    for notice in trace.notices:
        yield notice, NoticeCase(world, evidence, settings, trace, later_days=days)


def told(place: Path, engine: Engine) -> Made:
    """Every notice of the status."""
    evidence = engine.queries.gather("router")
    world = World("notices", engine, place / "notes", {}, [])
    trace = rank(evidence, engine.plan.settings)
    for notice in engine.status().notices:
        yield notice, NoticeCase(world, evidence, engine.plan.settings, trace)


def of_openclaw(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """First searches, words alone, zero vectors, chunks of another release, markers that do not close, a bad ledger."""
    write(place / "notes", {**NOTES, "memory/unknown.md": "ᚠᚢᚦ ᚱᚲ\n"})
    with opened(place, "openclaw-2026.3", "none") as engine:
        engine.indexer.catch_up()
        yield from asked(place, engine, "router")
    hide(place / "index.sqlite")
    with opened(place, "openclaw-2026.3") as engine:
        engine.indexer.sync()
        yield from asked(place, engine, "router")
        yield from asked(place, engine, "router", engine.plan.with_profile("openclaw-2026.9"))
    write(place / "notes", {"MEMORY.md": "- the router omada <!-- project: \n- it stands there\n"})
    patch.setenv("OPENCLAW_STATE_DIR", str(place / "openclaw"))
    write(place / "openclaw" / "state", {"openclaw.sqlite": "this is no database " * 10})
    hide(place / "index.sqlite")
    with opened(place, "openclaw-2026.9") as engine:
        engine.indexer.sync()
        yield from asked(place, engine, "router omada")


def of_questions(place: Path, _: pytest.MonkeyPatch) -> Made:
    """Questions of unknown, misspelt, too many, uneven and waiting words, and about time."""
    write(place / "notes", NOTES)
    with opened(place) as engine:
        engine.indexer.sync()
        yield from asked(place, engine, "ᚠᚢᚦ")
        yield from asked(place, engine, "ᚠᚢᚦ", engine.plan.with_profile("openclaw-2026.3"))
        yield from asked(place, engine, "喜欢什么书")
        yield from asked(place, engine, "omdaa routr")
        yield from asked(place, engine, "which vlan has the router, and where does the garlic grow?")
        yield from asked(place, engine, "giraffe walrus")
        words = (f"word{number}" for number in range(tokens.MOST_ALTERNATIVES + 5))
        yield from asked(place, engine, f"garlic omada {' '.join(words)}")
        yield from asked(place, engine, "what happened yesterday with the router", days=40)
        uneven = {"query.hybrid.vectorWeight": 0.9, "query.hybrid.textWeight": 0.6}
        yield from asked(place, engine, "router", engine.plan.settings.update(uneven, "harness"))
        write(place / "notes", {"memory/new.md": "The walrus likes cake.\n"})
        engine.status()
        yield from asked(place, engine, "omada walrus")


def of_providers(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """A provider that fails, one of another model, a table that cannot be read."""

    def broken() -> None:
        raise ProviderError("The table cannot be read.", "")

    write(place / "notes", NOTES)
    with opened(place, provider="scripted") as engine:
        engine.indexer.sync()
        with patch.context() as off:
            off.setattr(second_stage, "passage_table", broken)
            yield from asked(place, engine, "router")

        def fails(*_: object) -> None:
            raise ProviderError("Timed out.", "Try again.")

        with patch.context() as off:
            off.setattr(scripted.Scripted, "embed", fails)
            yield from asked(place, engine, "router omada")
    from memory_tui.providers.base import Identity, identity_key

    other = Identity("scripted", "other", identity_key("scripted", "other"), scripted.DIMS)
    with patch.context() as off:
        off.setattr(scripted.Scripted, "identity", property(lambda _: other))
        with opened(place, provider="scripted") as engine:
            yield from asked(place, engine, "router")


def of_remote(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """A provider elsewhere: texts whose vectors find no room on disk, a question with a secret in it."""
    from tests.engine.test_batches import World as Batches
    from tests.support.batch_server import BatchHandler, BatchPlay

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    usual = plan.settings
    with serving(BatchPlay(), BatchHandler) as play:
        world = Batches(play, place)
        world.write(6)

        def quick(choices: Any, approvals: Any) -> Any:
            found = usual(choices, approvals)
            return replace(found, clock=world.time.clock(), jobs=replace(found.jobs, least=world.least))

        patch.setattr(plan, "settings", quick)
        with patch.context() as full, world.open() as engine:
            full.setattr("tempfile.TemporaryFile", Full)
            engine.indexer.sync(reason="cli")
            yield from told(place, engine)
        with world.open() as engine:
            engine.indexer.sync(reason="cli")
            patch.setattr(ChainMember, "remote", property(lambda _: True))
            yield from asked(place, engine, f"what is {SECRET}")


def of_index(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """Notes that vanish, settings that change, texts that are refused, a damaged index, a lost root."""
    from memory_tui.providers.failures import Cause, ProviderFailure

    real = scripted.Scripted.embed

    def refuses(provider: Any, texts: Any, kind: Any) -> Any:
        if any("poison" in text for text in texts):
            raise ProviderFailure(Cause.TOO_LONG, "too long")
        return real(provider, texts, kind)

    write(place / "notes", {**NOTES, **{f"memory/{n}.md": f"note {n} of the router\n" for n in range(9)}})
    write(place / "notes", {"memory/poison.md": "poison of the garden\n"})
    with patch.context() as off:
        off.setattr(scripted.Scripted, "embed", refuses)
        with opened(place, provider="scripted") as engine:
            engine.indexer.sync()
            yield from told(place, engine)
            for number in range(9):
                (place / "notes" / "memory" / f"{number}.md").unlink()
            engine.indexer.sync()
            yield from told(place, engine)
    with opened(place, provider="scripted", changes={"chunking.tokens": "50", "chunking.overlap": "10"}) as engine:
        engine.status()
        yield from told(place, engine)
    with opened(place, provider="none") as engine:
        engine.indexer.sync()
        hide(place / "index.sqlite")
        (place / "notes").rename(place / "hidden")
        with suppress(WorkspaceError):
            engine.indexer.catch_up()
        yield from told(place, engine)


def of_opening(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """An index on a shared file system, damaged, that another process writes, where nothing can be written."""
    write(place / "notes", NOTES)
    index = place / "index.sqlite"
    with patch.context() as off, opened(place, provider="none") as engine:
        mounts = place / "mountinfo"
        mounts.write_text(f"27 1 254:0 / / rw - ext4 /dev/vda rw\n30 27 0:9 / {place} rw shared:1 - nfs4 host:/x rw\n")
        off.setattr(files, "_MOUNTS", mounts)
        engine.indexer.sync()
        yield from told(place, engine)
    with opened(place, provider="none", changes={"sync.onSearch": "true"}) as engine:
        engine.indexer.sync()
    held = locks.WriterLock.acquire(index)
    assert held is not None
    write(place / "notes", {"memory/new.md": "a new note of the router\n"})
    with opened(place, provider="none", changes={"sync.onSearch": "true"}) as engine:
        engine.indexer.catch_up()
        yield from told(place, engine)
        held.release()
    (place / "notes" / "memory" / "new.md").unlink()
    damage(index)
    with opened(place, provider="none") as engine:
        engine.indexer.sync()
        yield from told(place, engine)
    damage(index)
    (place / "temporary").mkdir()
    real = index_file._with_room

    def refuses(path: Path) -> Path:
        return real(path) if "temporary" in path.parts else real(place / "MEMORY" / "x" / path.name)

    with patch.context() as off:
        off.setattr("tempfile.tempdir", str(place / "temporary"))
        (place / "MEMORY").write_text("in the way")
        off.setattr(index_file, "_with_room", refuses)
        with opened(place, provider="none") as engine:
            engine.indexer.sync()
            yield from (one for one in told(place, engine) if isinstance(one[0], index_file.NotCopied))
    (place / "file").write_text("in the way")
    with patch.context() as off:
        off.setattr("tempfile.tempdir", str(place / "temporary"))
        with opened(place, provider="none", index=str(place / "file" / "index.sqlite")) as engine:
            engine.indexer.sync()
            yield from told(place, engine)


def hide(index: Path) -> None:
    """Take an index out of its place."""
    index.replace(f"{index}.was")


def damage(index: Path) -> None:
    """Spoil what an index says of its tables."""
    data = bytearray(index.read_bytes())
    data[100:2000] = b"\xa5" * 1900
    index.write_bytes(data)


def of_sessions(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """Sessions of OpenClaw with a message in an unknown form, without their table, and no room for copies."""
    from tests.openclaw.test_agent_sessions import AT, Database

    write(place / "notes", NOTES)
    with opened(place, provider="none") as engine:
        engine.indexer.sync()
        database = Database(place / "agent" / "openclaw.sqlite")
        evidence = engine.queries.gather("router")
        trace = rank(evidence, engine.plan.settings)
        case = NoticeCase(World("notices", engine, place / "notes", {}, []), evidence, engine.plan.settings, trace)
        database.say("a", "Short.", "Long. " * 90, compress=zstd.compress)
        row = ("a", 9, AT, b"no such format")
        database.connection.execute("INSERT INTO transcript_events VALUES (?, ?, NULL, ?, ?, 14)", row)
        (place / "file").write_text("in the way")
        for folder in (place / "file" / "copies", place / "copies"):
            copies = agent_sessions.SessionCopies(database.path, folder, place / "archive")
            copies.refresh()
            assert copies.problem is not None
            yield copies.problem, case
        database.connection.execute("DROP TABLE session_windows")
        copies.refresh()
        assert copies.problem is not None
        yield copies.problem, case
        database.connection.close()


def of_machine(place: Path, patch: pytest.MonkeyPatch) -> Made:
    """SQLite without its parts, a switch that names none of them, a configuration with a wrong value."""
    write(place / "notes", NOTES)
    for off in ("fts5", "trigram", "vec0 nonsense"):
        patch.setenv(abilities.SWITCH, off.replace(" ", ","))
        with opened(place, provider="scripted", changes={"store.fts.tokenizer": "trigram"}) as engine:
            engine.indexer.sync()
            yield from told(place, engine)
            yield from asked(place, engine, "router")
    patch.delenv(abilities.SWITCH)
    with opened(place, provider="builtin", changes={"query.minScore": "0"}) as engine:
        engine.indexer.sync()
        yield from asked(place, engine, "香蕉 router")
    hide(place / "index.sqlite")
    config = place / "openclaw.json"
    config.write_text('{"agents": {"defaults": {"memorySearch": {"query": {"maxResults": "many"}}}}}')
    with opened(place, provider="none", config=str(config)) as engine:
        engine.indexer.sync()
        yield from told(place, engine)
    config.write_text('{"agents": {"defaults": {"memorySearch": {"multimodal": {"enabled": true}}}}}')
    with opened(place, provider="none", config=str(config)) as engine:
        engine.indexer.sync()
        yield from told(place, engine)
    config.write_text('{"agents": {"defaults": {"memorySearch": {"store": {"vector": {"extensionPath": "vec0.so"}}}}}}')
    with opened(place, provider="none", config=str(config)) as engine:
        engine.indexer.sync()
        yield from told(place, engine)
    hide(place / "index.sqlite")
    fixed = {"query.hybrid.mmr.lambda": "0.1", "query.hybrid.textWeight": "1"}
    with opened(place, "openclaw-2026.9", "none", changes=fixed) as engine:
        engine.indexer.sync()
        yield from told(place, engine)


SCENES: dict[Callable[[Path, pytest.MonkeyPatch], Made], set[type]] = {
    of_openclaw: {
        release_differences.EmptiedThere,
        release_differences.FirstSearchThere,
        release_differences.ZeroVectors,
        release_differences.CutOtherwise,
        release_differences.OtherVectors,
        release_differences.NeverRecalledThere,
        release_differences.TrustUnread,
    },
    of_questions: {
        notices.WordsUnknown,
        notices.LanguageUnknown,
        notices.AskedInParts,
        notices.SearchedOtherwise,
        notices.LongQuestion,
        notices.ReadAsTime,
        notices.TimeFromToday,
        notices.UnevenWeights,
        FoundByMeaningAlone,
        WaitingHolds,
    },
    of_providers: {notices.PassagesByWords, notices.MeaningOff, notices.OtherModel, notices.AnsweredOtherwise},
    of_remote: {notices.BatchWaits, notices.QuestionWithheld},
    of_index: {notices.VectorsRefused, NotesVanished, RebuildWaits, index_file.IndexGone, notices.RootLost},
    of_opening: {
        index_file.OnSharedFiles,
        index_file.KeptElsewhere,
        index_file.NotCopied,
        index_file.MovedAside,
        index_file.IndexNotUsed,
    },
    of_sessions: {
        agent_sessions.MessagesNotRead,
        agent_sessions.SessionsNotRead,
        agent_sessions.TranscriptsNotWritten,
    },
    of_machine: {
        notices.NoFullText,
        notices.NoTrigrams,
        notices.NumpyCompares,
        notices.NotTranslated,
        notices.ExtensionNotRun,
        notices.MediaNotRead,
        notices.UnknownSwitch,
        notices.ConfigProblem,
        notices.SettingIgnored,
    },
}
"""The memories, and the kinds of notices that each gives rise to."""
