"""Images and sounds below extraPaths are embedded by Gemini with their bytes, searched, and refused by all others."""

import base64
import hashlib
import json
import re

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.errors import PathRefused
from memory_tui.events import FileIndexed
from memory_tui.index import database
from memory_tui.workspace import roots
from memory_tui.workspace.notes import MediaRules
from tests.support.provider_server import Play, serving, shaped, vector
from tests.support.workspace import options_of, put_all, synced

PNG, OGG = b"\x89PNG\r\n\x1a\n", b"OggS"
DIMS = 256
GEMINI = {"provider": "gemini", "model": "gemini-embedding-2-preview", "outputDimensionality": DIMS}
FILES = {
    "cat.PNG": PNG + b"a tabby cat sleeps on the sofa",
    "deep/talk.ogg": OGG + b"plans about the harbour bridge",
    "large.png": PNG + b"x" * 3000,
    "plan.md": b"The budget of the kitchen\n",
    "film.mp4": b"\0\0\0\x18ftypmp42",
}


def seen(handler, asked):
    """Answers as a model that sees and hears: the bytes of a media file are the words of what it shows."""
    made = []
    for one in asked.body.get("requests", [asked.body]):
        text, *inline = one["content"]["parts"]
        shown = base64.b64decode(inline[0]["inlineData"]["data"]) if inline else b""
        words = (
            re.sub(rb"^(\x89PNG\r\n\x1a\n|OggS)", b"", shown).decode() if inline else text["text"].rpartition(": ")[2]
        )
        made.append(vector(words, DIMS))
    handler.json(200, shaped(asked, made))


@pytest.fixture
def play():
    with serving(Play(dims=DIMS, usual=seen)) as running:
        yield running


@pytest.fixture
def place(tmp_path):
    put_all(tmp_path / "notes", {"MEMORY.md": "The router is an Omada\n", "memory/beside.png": PNG})
    put_all(tmp_path / "pictures", FILES)
    return tmp_path


def options(place, play, multimodal=None, **more):
    search = {
        **GEMINI,
        "extraPaths": [str(place / "pictures")],
        "remote": {"baseUrl": play.url, "apiKey": "key-of-a-test"},
        "multimodal": {"enabled": True, "maxFileBytes": 2000, **(multimodal or {})},
        **more,
    }
    config = place / "openclaw.json"
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": search}}}))
    return options_of(place / "notes", place / "index.sqlite", ("profile", "openclaw-2026.3"), config=str(config))


def parts_sent(play):
    """What was sent of each media file, by its label."""
    sent = [one["content"]["parts"] for asked in play.asked for one in asked.body.get("requests", ())]
    return {parts[0]["text"]: parts for parts in sent if len(parts) > 1}


def test_they_are_embedded_with_their_bytes_and_found_by_what_they_show(place, play):
    with synced(options(place, play)) as engine:
        cat, talk = "Image file: ../pictures/cat.PNG", "Audio file: ../pictures/deep/talk.ogg"
        assert parts_sent(play) == {
            label: [{"text": label}, {"inlineData": {"mimeType": mime, "data": base64.b64encode(FILES[name]).decode()}}]
            for label, mime, name in ((cat, "image/png", "cat.PNG"), (talk, "audio/ogg", "deep/talk.ogg"))
        }
        for query, label in (("tabby cat on the sofa", cat), ("harbour bridge plans", talk)):
            best = engine.search.search(query).recalled[0]
            assert (best.snippet, best.chunk.start_line, best.chunk.end_line) == (label, 1, 1)
            assert best.text == 0, "no word of the question stands in the label"
        assert len(engine.search.gather("talk.ogg").openclaw.postings.rows) == 1, "words find it by its name"
        left = {one.path: one.rule for one in engine.status().freshness.left_out}
        assert left["../pictures/large.png"] == "too big"
        assert left["../pictures/film.mp4"] == left["memory/beside.png"] == "not markdown"
        asked = len(play.asked)
        assert engine.index.sync(force=True).embedded == 0, "bytes that were embedded are not sent again"
        assert len(play.asked) == asked


def test_a_changed_picture_is_embedded_anew_and_a_removed_one_goes(place, play):
    with synced(options(place, play)) as engine:
        (place / "pictures/cat.PNG").write_bytes(PNG + b"two dogs in the garden")
        (place / "pictures/deep/talk.ogg").unlink()
        engine.index.sync()
        best = engine.search.search("dogs in the garden").recalled[0]
        assert best.chunk.path == "../pictures/cat.PNG"
        paths = {row.path for row in engine.notes.files()}
        assert "../pictures/deep/talk.ogg" not in paths
        assert "../pictures/cat.PNG" in paths


def test_its_hash_and_its_scope_are_the_documented_ones(place, play):
    data, path = FILES["cat.PNG"], "../pictures/cat.PNG"
    entry = (
        f'{{"path":"{path}","contentText":"Image file: {path}","mimeType":"image/png",'
        f'"dataHash":"{hashlib.sha256(data).hexdigest()}"}}'
    )
    with synced(options(place, play)) as engine:
        with engine.search.reader() as store:
            (row,) = store.chunks_of(path)
            assert row.hash == hashlib.sha256(entry.encode()).hexdigest()
            assert store.texts([row.rowid]) == {row.rowid: f"Image file: {path}"}
        assert engine.plan.roots.media == MediaRules(("image", "audio"), 2000)
    scope = '{"extraPaths":["/p"],"multimodal":{"enabled":true,"modalities":["audio","image"],"maxFileBytes":7}}'
    assert database.scope_hash(["/p"], (), MediaRules(most_bytes=7)) == hashlib.sha256(scope.encode()).hexdigest()


def test_only_the_modalities_that_are_asked_for_are_read(place, play):
    with synced(options(place, play, {"modalities": ["audio"]})):
        assert [*parts_sent(play)] == ["Audio file: ../pictures/deep/talk.ogg"]


@pytest.mark.parametrize(
    "more",
    [
        {"fallback": "openai"},
        {"model": "gemini-embedding-001"},
        {"provider": "openai", "model": "text-embedding-3-small"},
    ],
    ids=["a fallback", "another model", "another provider"],
)
def test_where_it_cannot_be_they_are_refused_with_the_reason(place, play, more):
    with Engine.open(options(place, play, **more)) as engine:
        assert engine.plan.roots.media is None
        (notice,) = [notice for notice in engine.notices() if notice.code == "media"]
        assert "the model gemini-embedding-2 and the fallback none" in notice.message
        engine.index.sync()
        assert {row.path for row in engine.notes.files()} == {"MEMORY.md", "../pictures/plan.md"}
        assert parts_sent(play) == {}


def test_a_picture_is_shown_by_its_label_and_never_edited_or_given_as_a_note(place, play):
    with Engine.open(options(place, play)) as engine:
        known, path = engine.plan.roots, "../pictures/cat.PNG"
        assert roots.document(known, path).text == f"Image file: {path}"
        for refused in (roots.note, roots.destination):
            with pytest.raises(PathRefused, match=r"is not a note"):
                refused(known, path)
        with pytest.raises(PathRefused):
            roots.document(known, "memory/elsewhere/../../../secret.png")
        assert roots.why_path(known, str(place / "pictures/cat.PNG")).included


def test_nothing_is_sent_of_a_file_that_changed_after_it_was_indexed(place, play):
    cat, label = place / "pictures/cat.PNG", "Image file: ../pictures/cat.PNG"

    def change(event):
        if isinstance(event, FileIndexed) and event.path == "../pictures/cat.PNG":
            changed.append(event.path)
            cat.write_bytes(PNG + b"something private")

    changed: list[str] = []
    with synced(options(place, play), change) as engine:
        assert changed, "it changes between its indexing and its sending"
        assert set(parts_sent(play)) == {"Audio file: ../pictures/deep/talk.ogg"}
        with engine.search.reader() as store:
            (row,) = store.chunks_of("../pictures/cat.PNG")
            assert store.texts([row.rowid]) == {row.rowid: label}
        assert engine.status().embedded == engine.status().chunks - 1
        engine.listen(lambda event: None)
        engine.index.sync()
        sent = parts_sent(play)[label][1]["inlineData"]["data"]
        assert base64.b64decode(sent) == cat.read_bytes(), "the next sync indexes and sends what is there now"
