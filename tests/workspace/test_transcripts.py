"""Transcripts of sessions: what is read of a JSONL file, which secrets are masked, and which lines it stands on."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.errors import PathRefused
from memory_tui.secrets.finder import redact
from memory_tui.workspace import roots as workspace_roots
from memory_tui.workspace import transcripts
from memory_tui.workspace.roots import Roots, locate, scan, why_path
from tests.support.workspace import put


def said(role, content):
    return json.dumps({"type": "message", "message": {"role": role, "content": content}}, ensure_ascii=False)


TEXTS = (" In the\n\n cellar. ", "\t", "Second shelf.")
RECORDS = (
    json.dumps({"type": "session", "id": "abc"}),
    said("user", "Where  is\nthe\u3000router?"),
    "",
    "{half a li",
    said("assistant", [{"type": "thinking", "text": "hm"}, *({"type": "text", "text": text} for text in TEXTS)]),
    said("toolResult", "ls -la"),
    said("user", [{"type": "image", "data": "..."}]),
    said("user", "token=abcdefghijklmnopqrstuvwxyz"),
    "[1, 2]",
)
CONVERSATION = "".join(f"{record}\n" for record in RECORDS)
LINES = ("User: Where is the router?", "Assistant: In the cellar. Second shelf.", "User: token=abcdef…wxyz")


@pytest.fixture
def roots(tmp_path):
    put(tmp_path / "ws", "MEMORY.md")
    (tmp_path / "ws" / "memory").mkdir()
    folder = tmp_path / "sessions"
    put(folder, "a.jsonl", text=CONVERSATION)
    return Roots.open(tmp_path / "ws", sources=("memory", "sessions"), sessions=folder)


def the_transcript(roots):
    return next(found for found in scan(roots).notes if found.source == "sessions")


def test_only_what_was_said_is_read(roots):
    found = the_transcript(roots)
    assert found.path == "sessions/a.jsonl"
    read = transcripts.read(found)
    assert tuple(read.text.split("\n")) == LINES
    assert read.lines == (2, 5, 8)
    assert read.skipped == 1
    assert read.hash == hashlib.sha256(("\n".join(LINES) + "\n2,5,8").encode()).hexdigest()


def test_a_reader_sees_each_message_on_its_own_line_of_the_file(roots):
    lines = workspace_roots.document(roots, "sessions/a.jsonl").text.split("\n")
    assert [lines[n - 1] for n in (2, 5, 8)] == list(LINES)
    assert not any(line for at, line in enumerate(lines, 1) if at not in (2, 5, 8))
    assert len(lines) == len(CONVERSATION.split("\n"))
    assert workspace_roots.document(roots, "MEMORY.md").text == "note\n"


def test_an_empty_conversation_is_read_as_nothing(roots):
    Path(the_transcript(roots).absolute).write_text('{"type":"session"}\n')
    read = transcripts.read(the_transcript(roots))
    assert (read.text, read.lines) == ("", ())
    assert read.hash == hashlib.sha256(b"\n").hexdigest()


def test_which_files_are_transcripts(roots, tmp_path):
    folder = tmp_path / "sessions"
    for name in ("b.jsonl.reset.2026-03-01", "c.jsonl.deleted.1", "sessions.json", "d.jsonl.lock"):
        (folder / name).write_text("")
    put(folder / "below", "e.jsonl", text="")
    (folder / "link.jsonl").symlink_to(folder / "a.jsonl")
    seen = scan(roots)
    assert [n.path for n in seen.notes] == ["MEMORY.md", "sessions/a.jsonl"]
    assert {left.path: left.rule for left in seen.left_out} == {
        "sessions/b.jsonl.reset.2026-03-01": "not a transcript",
        "sessions/c.jsonl.deleted.1": "not a transcript",
        "sessions/sessions.json": "not a transcript",
        "sessions/d.jsonl.lock": "not a transcript",
        "sessions/below": "not a transcript",
        "sessions/link.jsonl": "symlink",
    }
    both = scan(Roots.open(roots.workspace, sources=("sessions",), sessions=folder, archives=True))
    archived = ["sessions/b.jsonl.reset.2026-03-01", "sessions/c.jsonl.deleted.1"]
    assert [n.path for n in both.notes] == ["sessions/a.jsonl", *archived]


def test_transcripts_are_read_only_where_sources_and_folder_say_so(tmp_path, roots):
    folder = tmp_path / "sessions"
    assert Roots.open(roots.workspace, sessions=folder).sources == ("memory",)
    assert Roots.open(roots.workspace, sources=("sessions",)).sources == ("memory",), "never without any source"
    assert len(scan(Roots.open(roots.workspace, sessions=folder)).notes) == 1
    gone = scan(Roots.open(roots.workspace, sources=("memory", "sessions"), sessions=tmp_path / "nowhere"))
    assert [(left.path, left.rule) for left in gone.left_out] == [("sessions", "missing root")]


@pytest.mark.parametrize(
    "path",
    [
        "sessions/../ws/MEMORY.md",
        "sessions/none.jsonl",
        "sessions/",
        "sessions/a.jsonl/../a.jsonl",
        "sessions/link.jsonl",
    ],
)
def test_nothing_else_can_be_opened_as_a_transcript(roots, tmp_path, path):
    (tmp_path / "sessions" / "link.jsonl").symlink_to(tmp_path / "sessions" / "a.jsonl")
    with pytest.raises(PathRefused):
        workspace_roots.document(roots, path)


def test_what_an_agent_may_get_stays_as_it_was(roots):
    with pytest.raises(PathRefused):
        locate(roots, "sessions/a.jsonl")
    with pytest.raises(PathRefused):
        locate(roots, the_transcript(roots).absolute)


def test_why_path_knows_transcripts(roots):
    verdict = why_path(roots, "sessions/a.jsonl")
    assert (verdict.included, verdict.detail) == (True, "It is the transcript of a session.")


LONG = "A1b2C3d4E5f6G7h8I9j0K1l2"
SHOWN = "A1b2C3…K1l2"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"OPENAI_API_KEY={LONG}", f"OPENAI_API_KEY={SHOWN}"),
        ("password: 'short'", "password: '***'"),
        ('{"apiKey": "abc"}', '{"apiKey": "***"}'),
        (f"--api-key {LONG} --verbose", f"--api-key {SHOWN} --verbose"),
        (f"Authorization: Bearer {LONG}", f"Authorization: Bearer {SHOWN}"),
        (f"bearer {LONG} and", f"bearer {SHOWN} and"),
        ("-----BEGIN RSA PRIVATE KEY----- abc -----END RSA PRIVATE KEY----- rest", "*** rest"),
        ("sk-12345678", "***"),
        ("ghp_abcdefghijklmnopqrstuvwxyz", "ghp_ab…wxyz"),
        ("github_pat_11ABCDEFG0123456789012", "github…9012"),
        ("xoxb-1234567890-abcdef", "xoxb-1…cdef"),
        ("xapp-1-A0123456789", "xapp-1…6789"),
        ("gsk_0123456789", "***"),
        ("AIzaSyA0123456789abcdefghij", "AIzaSy…ghij"),
        ("pplx-0123456789", "***"),
        ("npm_0123456789", "***"),
        ("bot123456:ABCDEFGHIJKLMNOPQRSTuv", "bot123456…STuv"),
        ("at 123456:ABCDEFGHIJKLMNOPQRSTuv", "at 123456…STuv"),
        ("keys: one, and 12:30", "keys: one, and 12:30"),
        ("monkey: banana", "monkey: ***"),  # the documented pattern asks for no word of its own
        ("tokens are fine, sk-short too", "tokens are fine, sk-short too"),
    ],
)
def test_secrets_are_masked(text, masked):
    assert redact(text) == masked


def test_long_texts_are_looked_at_in_slices():
    text = "x " * 20_000 + f"TOKEN={LONG}"
    assert redact(text).endswith(f"TOKEN={SHOWN}")


@given(st.text("ab \"'=:\n", max_size=40), st.text("abcXYZ019-_", min_size=18, max_size=60))
def test_a_named_secret_never_stays(before, end):
    secret = "Q" + end
    assert secret not in redact(f"{before} PASSWORD={secret} after")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_line_by_line(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("s")
    (folder / "x.jsonl").write_bytes(data)
    found = transcripts.listing(str(folder), archives=False).notes[0]
    read = transcripts.read(found)
    assert len(read.lines) == (read.text.count("\n") + 1 if read.text else 0)
    assert transcripts.document(found).text.count("\n") == data.decode("utf-8", "replace").count("\n")
