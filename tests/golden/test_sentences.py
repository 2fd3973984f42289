"""Each sentence of the table, rendered with sample fields, as `data/sentences.txt` holds it.

`MEMORY_TUI_UPDATE_GOLDEN=1 pytest tests/golden/test_sentences.py` writes them anew; read each difference.
"""

import ast
import os
from pathlib import Path
from typing import Any

import memory_tui
from memory_tui import sentences
from memory_tui.inbox.checks import CHECKS
from memory_tui.providers.chain import ServingProvider
from memory_tui.search.trace import ChunkRef, Correction, QueryPlan
from memory_tui.sentences import TABLE, Notice

FILE = Path(__file__).parent / "data" / "sentences.txt"
_PLAN = QueryPlan(("giraffe", "walrus"), (), "giraffe OR walrus")
_WHO = ServingProvider("openai", "small", "failed", "", "", "keywords only", "It timed out.", "Try again.")
_PROFILE = {"profile": "openclaw-2026.9"}
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "words_unknown": [{"recalled": 0}, {"recalled": 3}],
    "language_unknown": [{"language": "Chinese", "known": 0.0}, {"language": "Japanese", "known": 0.34}],
    "not_translated": [{"words": ("书", "读")}],
    "searched_otherwise": [
        {"correction": Correction("routr", ("router",))},
        {"correction": Correction("tick", ("ticket",), also=True)},
    ],
    "asked_in_parts": [{"parts": ("Which vlan?", "Where does garlic grow?")}],
    "read_as_time": [{"words": "yesterday", "days": "2026-11-19", "alone": alone} for alone in (False, True)],
    "long_question": [{"different": 1200, "rarest": 64, "first": 32}],
    "uneven_weights": [
        {"vector": 0.9, "text": 0.6, "vector_counts": 0.6, "text_counts": 0.4}
        | {"vector_origin": "--set", "text_origin": "default"}
    ],
    "question_withheld": [{"kinds": ("GitHub token", "password"), "host": "api.openai.com"}],
    "found_by_meaning_alone": [
        {"plan": _PLAN, "hits": hits, "near": near, "dated": dated}
        for hits, near, dated in ((3, 0, 0), (3, 2, 0), (3, 3, 0), (1, 1, 1), (3, 2, 1), (4, 2, 2))
    ],
    "meaning_off": [{"cause": "It timed out.", "remedy": "Try again."}],
    "other_model": [{"made_with": "openai small", "asked_with": "openai large"}],
    "answered_otherwise": [{"who": _WHO}],
    "passages_by_words": [{"problem": "The table cannot be read."}],
    "batch_waits": [{"texts": 1200}],
    "vectors_refused": [{"chunks": 1, "reasons": ("too long",)}, {"chunks": 1200, "reasons": ("too long", "secret")}],
    "root_lost": [{"path": "/notes", "state": "gone", "detail": "/notes is gone.", "remedy": "Bring it back."}],
    "notes_vanished": [{"missing": 9, "known": 10, "reason": "9 of 10 notes vanished at once"}],
    "rebuild_waits": [{"reasons": ("model: a is now b",), "failed": failed} for failed in (False, True)],
    "on_shared_files": [{"path": "/mnt/index.sqlite", "system": "nfs4"}],
    "index_gone": [{"path": "/i/index.sqlite"}],
    "moved_aside": [{"path": "/i/index.sqlite", "why": "The index is damaged.", "kept": "/i/index.sqlite.damaged"}],
    "index_not_used": [{"path": "/i/x", "error": "index_busy", "said": "It is busy.", "remedy": "Wait."}],
    "messages_not_read": [{"database": "/o/agent.sqlite", "messages": count} for count in (1, 2)],
    "sessions_not_read": [{"database": "/o/agent.sqlite", "detail": "It is locked.", "remedy": "Close OpenClaw."}],
    "transcripts_not_written": [{"folder": "/o/copies", "reason": "Permission denied"}],
    "config_problem": [{"said": "openclaw.json:3: maxResults is no number.", "key": "k", "file": "f", "line": 3}],
    "setting_ignored": [
        {"key": "query.hybrid.textWeight", **_PROFILE},
        {"key": "query.hybrid.mmr.enabled", **_PROFILE},
    ],
    "media_not_read": [{"model": "gemini-embedding-2"}],
    "emptied_there": [_PROFILE],
    "first_search_there": [_PROFILE],
    "zero_vectors": [{"count": 2, "profile": ""}, {"count": 2, **_PROFILE}],
    "other_vectors": [{**_PROFILE, "provider": provider} for provider in ("builtin", "local-small")],
    "cut_otherwise": [
        {"chunking": "2026.3", "profile": "openclaw-2026.9"},
        {"chunking": "2026.9", "profile": "openclaw-2026.3"},
    ],
    "trust_unread": [{"detail": "The database is damaged.", "step": "Open OpenClaw's own database."}],
    "never_recalled_there": [
        {**_PROFILE, "citations": tuple(f"memory/{n}.md#L1-L2" for n in range(count))} for count in (1, 4)
    ],
    "outside_roots": [{"detail": "It lies in /etc."}],
    "excluded": [{"rule": "symlink", "detail": "It is a link."}],
    "no_such_file": [{"detail": "There is no file memory/x.md."}],
    "unreadable_file": [{"rule": "too big", "detail": "It has 40 MB."}],
    "changed_since_indexed": [{"change": "new"}, {"change": "changed"}],
    "in_no_chunk": [{"line": None, "lines": 0}, {"line": 2, "lines": 3}, {"line": 9, "lines": 3}],
    "words_off": [{}],
    "no_word": [{"dropped": ()}, {"dropped": ("the", "of")}],
    "not_matched": [
        dict(zip(("words", "absent", "nowhere", "join", "hidden"), fields, strict=True))
        for fields in (
            (("a",), ("a",), (), "OR", ()),
            (("a", "b"), ("a", "b"), ("b",), "OR", ()),
            (("a",), ("a",), ("a",), "AND", ()),
            (("a", "b"), ("b",), (), "AND", ("b",)),
            (("a", "b", "c"), ("a", "b", "c"), ("a", "b"), "AND", ("b", "c")),
        )
    ],
    "copy_of": [{"what": what, "citation": "memory/2026-03-05.md#L1-L9"} for what in ("passage", "line")],
    "outside_text_pool": [{"rank": 70, "pool": 60, "bm25": -1.234, "edge": -2.5}],
    "no_vector": [
        {"cause": "the embedding model knows no word of the query", "text": sentences.notice("no_word", dropped=())}
    ],
    "model_mismatch": [{"detail": "The index was made with x.", "text": sentences.notice("words_off")}],
    "outside_vector_pool": [
        {"rank": 101, "of": 1200, "pool": 60, "cosine": 0.1234, "edge": 0.2}
        | {"text": sentences.notice("outside_text_pool", rank=70, pool=60, bm25=-1.2, edge=-2.5)}
    ],
    "unreadable_project": [{}],
    "recalled": [
        {"place": 3, "relaxed": False, "rescued": False, "kept_back": False, **more}
        for more in ({}, {"relaxed": True}, {"rescued": True}, {"kept_back": True})
    ],
    "below_min_score": [
        {"floor": 0.35, "margin": margin, "relaxed": relaxed} for margin, relaxed in ((0.12, False), (2e-7, True))
    ],
    "lowered_by_decay": [{"floor": 0.35, "margin": 0.12, "age_days": 40.2, "factor": 0.4, "relaxed": False}],
    "displaced_by_mmr": [
        {"twin": ChunkRef(1, "x", "MEMORY.md", "memory", 1, 9), "similarity": 0.8, "place": 7, "limit": 6}
    ],
    "beyond_limit": [{"place": 7, "limit": 6}, {"place": 2, "limit": 1}],
    "no_single_knob": [{"recalled": False}, {"recalled": True}],
    "no_pair": [{}],
    "no_rephrasing": [{"words": ("garlic", "october"), "shorter": shorter} for shorter in ("", "where")],
    "words_left_out": [{"words": ("the", "of"), "reason": reason} for reason in sentences.LEFT_OUT],
    "secret_found": [{"sort": "password"}],
    "not_utf8": [{"replaced": 1, "utf16": False}, {"replaced": 3, "utf16": False}, {"replaced": 0, "utf16": True}],
    "not_trusted": [{"state": "edited since the agent wrote it"}],
    "promoted_there": [{"key": "k", "night": night} for night in ("", "2026-11-19")],
    "lines_lost": [
        {"change": 1, "lines": lines, "at": 1_795_000_000.0, "gone": lines > 1, "by": "openclaw"} for lines in (1, 4)
    ],
    "annotation_idle": [{"cause": "A trigger of one letter is not read"}],
    "invalid_day": [{"day": "2026-02-30"}],
    "day_ahead": [{"days": 40}],
    "said_twice": [{"twin": "MEMORY.md:4"}],
    "file_copied": [{"twin": "memory/a.md"}],
    "overtakes": [{"twin": "MEMORY.md:4"}],
    "opposes": [{"twin": "MEMORY.md:4"}],
    "commands_agent": [{"what": "hides from the user", "hidden": hidden} for hidden in ("", "a comment")],
    "kept_silent": [{"reason": "lines that logs say again"}],
    **{check.cause: [{"count": 3, "notes": 2, "path": "a.md", "twin": "b.md"}] for check in CHECKS},
    "path_gone": [{"path": "memory/a.md"}],
    "unlisted": [{"line": "- [A](a.md)"}],
    "beyond_budget": [
        {"path": "MEMORY.md", "first": 9, "last": last, "host": "OpenClaw", "entries": 12} for last in (0, 20)
    ],
    "beginning_examined": [{"lines": 8_000}],
    "never_delivered": [{"age": 80}],
    "blank_query": [{}],
    "empty_index": [
        {"files": 0, "pending": pending, "unreadable": unreadable} for pending, unreadable in ((0, 0), (2, 0), (0, 1))
    ],
    "no_usable_word": [{"dropped": (), "pointless": pointless} for pointless in (False, True)],
    "all_below_gate": [
        {"candidates": count, "best": 0.482, "floor": 0.5, "decayed": decayed}
        for count, decayed in ((1, 0), (2, 0), (3, 2))
    ],
    "nothing_matched": [
        {"missing": missing, "join": join}
        for missing, join in ((("walrus",), "OR"), (("a", "b"), "AND"), ((), "OR"), ((), "AND"))
    ],
    "answer_level": [
        {"level": level, "part": part, "held": 0.79, "share": 0.79 if part else 0.3, "needs": 0.36}
        for level, part in (
            ("found", ""),
            ("found", 'the best lines lack "walrus"'),
            ("nearby only", ""),
            ("nothing holds these words", ""),
        )
    ],
}
"""Fields of each kind, one set for each way in which its sentence can read."""


def rendered():
    """Write every sentence with its code and next step."""
    for kind, samples in SAMPLES.items():
        for fields in samples:
            one = Notice(kind, fields)
            yield f"{kind} ({one.code}): {one.message}" + (f"\n    {one.next_step}" if one.next_step else "")
            yield from (f"    = {words}" for words in (one.brief, one.short) if words)


def test_sentences_are_those_on_record():
    assert set(SAMPLES) == set(TABLE)
    text = "\n".join(rendered()) + "\n"
    if os.environ.get("MEMORY_TUI_UPDATE_GOLDEN"):
        FILE.write_text(text)
    assert text == FILE.read_text()


def test_who_gives_a_notice_names_the_fields_of_its_sentence():
    """A missing field would be met only when the sentence is shown."""
    calls: dict[str, set[frozenset[str]]] = {}
    for path in Path(memory_tui.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == sentences.notice.__name__
            ):
                (kind,) = node.args
                assert isinstance(kind, ast.Constant), path
                names = [keyword.arg for keyword in node.keywords]
                if None not in names:
                    calls.setdefault(str(kind.value), set()).add(frozenset(map(str, names)))
    for kind, fields in calls.items():
        assert fields == {frozenset(SAMPLES[kind][0])}, kind
