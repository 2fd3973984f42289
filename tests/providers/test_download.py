"""Fetching a model file: resumed, checked, told about, and without touching a file that is not ours."""

import hashlib
import os
import threading
import time

import pytest

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled
from memory_tui.providers.download import ModelFile, cache_folder, fetch, fetch_shown, source_of
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import DownloadProgress, ProviderSettings
from tests.support.embed import settings_for
from tests.support.provider_server import FileHandler, Shelf, refusing, serving
from tests.support.waiting import LONG

MODEL = b"GGUF" + bytes(range(256)) * 4096
URI = "hf:some/repo/tiny.gguf"
NAME = "hf_some_repo_tiny.gguf"


@pytest.fixture
def shelf():
    with serving(Shelf({"tiny.gguf": MODEL}), FileHandler) as running:
        yield running


def settings(shelf, folder, seen=None, **env):
    return settings_for(
        None,
        "local",
        model_cache=folder,
        env={"HF_ENDPOINT": shelf.url, **env}.get,
        on_progress=(seen if seen is not None else []).append,
    )


def get(text, *args, stop=None, **more):
    chosen = settings(*args, **more)
    source = source_of(text, chosen)._replace(magic=b"GGUF")
    return fetch(source, chosen, stop or Stop())


def test_a_model_is_fetched_once_with_progress(shelf, tmp_path):
    seen: list[DownloadProgress] = []
    path = get(URI, shelf, tmp_path / "models", seen)
    assert path == tmp_path / "models" / NAME
    assert path.read_bytes() == MODEL
    assert (seen[-1].name, seen[-1].done, seen[-1].total) == (NAME, len(MODEL), len(MODEL))
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert os.listdir(path.parent) == [NAME]
    asked = len(shelf.asked)
    assert get(URI, shelf, tmp_path / "models") == path
    assert len(shelf.asked) == asked


@pytest.mark.parametrize("ranges", [True, False])
def test_after_a_break_it_goes_on_where_it_stopped(shelf, tmp_path, ranges):
    shelf.break_after, shelf.ranges = 400_000, ranges
    assert get(URI, shelf, tmp_path).read_bytes() == MODEL
    parts = [headers.get("Range", "") for path, headers in shelf.asked if path.startswith("/files/")]
    rest = [part for part in parts if part not in ("", "bytes=0-0")]
    assert len(rest) == ranges
    assert all(0 < int(part.removeprefix("bytes=").rstrip("-")) <= 400_000 for part in rest)


@pytest.mark.parametrize(
    ("content", "checksum", "text"),
    [
        (MODEL, "0" * 64, URI),
        (b"<html>Sign in</html>", None, URI),
        (MODEL, None, "{url}/files/tiny.gguf#sha256=" + "0" * 64),
    ],
)
def test_a_file_with_another_checksum_or_format_is_not_kept(shelf, tmp_path, content, checksum, text):
    shelf.files["tiny.gguf"], shelf.checksum = content, checksum
    with pytest.raises(ProviderFailure, match="its size, checksum or format") as caught:
        get(text.replace("{url}", shelf.url), shelf, tmp_path)
    assert (caught.value.state, os.listdir(tmp_path)) == (Cause.MALFORMED, [])
    shelf.files["tiny.gguf"] = MODEL
    path = get(f"{shelf.url}/files/tiny.gguf#sha256={hashlib.sha256(MODEL).hexdigest()}", shelf, tmp_path)
    assert path.read_bytes() == MODEL


def test_what_is_not_there_who_does_not_answer_and_what_cannot_be_written_is_named(shelf, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with refusing() as url:
        cases = (
            ("hf:some/repo/absent.gguf", shelf, tmp_path, Cause.NO_FILE, "answered 404"),
            (URI, Shelf(url=url), tmp_path, Cause.NETWORK, "could not be fetched"),
            (URI, shelf, tmp_path / "file" / "models", Cause.NO_FILE, "cannot be kept in"),
        )
        for text, server, folder, state, words in cases:
            with pytest.raises(ProviderFailure, match=words) as caught:
                get(text, server, folder)
            assert caught.value.state is state
    assert cache_folder(ProviderSettings()).parts[-2:] == ("memory-tui", "models")


def test_the_next_fetch_continues_the_part_of_the_last_one(shelf, tmp_path):
    shelf.break_after, shelf.stall = 400_000, True
    first, ended = Stop(), []

    def call():
        try:
            get(URI, shelf, tmp_path, stop=first)
        except Cancelled:
            ended.append("cancelled")

    caller = threading.Thread(target=call)
    caller.start()
    assert shelf.stalled.wait(LONG)
    while not any(part.stat().st_size for part in tmp_path.glob("*-part")):
        assert caller.is_alive()
        time.sleep(0.001)
    started = time.monotonic()
    first.set()
    caller.join(LONG)
    assert time.monotonic() - started < LONG, "it waited for the answer"
    assert ended == ["cancelled"]
    shelf.stall = False
    shelf.ended.set()
    have = next(tmp_path.glob("*-part")).stat().st_size
    shelf.break_after = None
    assert get(URI, shelf, tmp_path).read_bytes() == MODEL
    assert shelf.asked[-1][1]["Range"] == f"bytes={have}-"
    assert os.listdir(tmp_path) == [NAME]


def test_of_a_file_without_end_no_more_is_taken_than_was_announced(shelf, tmp_path):
    class Lying(dict[str, bytes]):
        asked = 0

        def get(self, name, default=None):
            self.asked += 1
            return MODEL[:1000] if self.asked == 1 else MODEL

    shelf.files, seen = Lying(), []
    with pytest.raises(ProviderFailure, match="its size, checksum or format is another"):
        get(URI, shelf, tmp_path, seen)
    assert seen[-1].done < len(MODEL)
    assert os.listdir(tmp_path) == []


def test_foreign_files_stay_as_they_are(shelf, tmp_path):
    foreign = {NAME + ".part": b"theirs", "other.gguf": b"GGUF theirs", NAME + ".0000.memory-tui-part": b"older"}
    for name, data in foreign.items():
        (tmp_path / name).write_bytes(data)
    get(URI, shelf, tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign
    (tmp_path / NAME).write_bytes(b"GGUF put there by somebody")
    assert get(URI, shelf, tmp_path).read_bytes() == b"GGUF put there by somebody"


@pytest.mark.parametrize("told", ["nothing", "size", "checksum"])
def test_a_file_that_is_not_what_was_told_is_fetched_again(shelf, tmp_path, told):
    size, checksum = len(MODEL) * (told == "size"), hashlib.sha256(MODEL).hexdigest() * (told == "checksum")
    chosen, path = settings(shelf, tmp_path), tmp_path / NAME
    file = ModelFile(source_of(URI, chosen), size, checksum, path)
    path.write_bytes(MODEL[:-1])
    assert fetch_shown(file, chosen) == path
    assert (path.read_bytes(), os.listdir(tmp_path)) == (MODEL, [NAME])
    asked = len(shelf.asked)
    fetch_shown(file, chosen)
    assert (len(shelf.asked) > asked) == (told == "nothing"), "what is as it was told is not fetched again"


def test_the_token_goes_to_the_first_host_only(shelf, tmp_path):
    with serving(Shelf({"tiny.gguf": MODEL}), FileHandler) as other:
        shelf.leads_to = f"{other.url}/files"
        get(URI, shelf, tmp_path, HF_TOKEN="hf_secret")
    assert {headers.get("Authorization") for _, headers in shelf.asked} == {"Bearer hf_secret"}
    assert {headers.get("Authorization") for _, headers in other.asked} == {None}


@pytest.mark.parametrize("leads_to", ["file://", "ftp://127.0.0.1", "http://127.0.0.1/\x1b[31m", "//["])
def test_a_redirect_out_of_the_web_is_not_followed(shelf, tmp_path, leads_to):
    shelf.leads_to = leads_to + str(tmp_path)
    (tmp_path / "tiny.gguf").write_bytes(MODEL)
    with pytest.raises(ProviderFailure, match=r"no address of the web|could not be fetched"):
        get(URI, shelf, tmp_path / "models")
    assert not list((tmp_path / "models").glob("*"))


@pytest.mark.parametrize("size", ["9" * 5000, "\xb2", "-1"], ids=["long", "superscript", "negative"])
def test_a_size_that_is_none_counts_as_not_told(shelf, tmp_path, size):
    shelf.size = size
    assert get(URI, shelf, tmp_path).read_bytes() == MODEL


def test_a_uri_that_names_no_file_is_explained_and_names_stay_inside_the_folder():
    usual = ProviderSettings(env={}.get)
    for text in ("hf:user/repo", "hf:user/repo/file.bin", "hf:a/b/c/../../x", "hf:"):
        with pytest.raises(ProviderFailure, match="names no model file") as caught:
            source_of(text, usual)
        assert "hf:user/repository/file.gguf" in caught.value.next_step
    assert source_of("hf:u/r/../../../x.gguf", usual).name == "hf_u_r_.._.._.._x.gguf"
    assert "/" not in source_of("https://h/%2e%2e/..", usual).name
    assert source_of("https://h/a.gguf", usual).name != source_of("https://g/a.gguf", usual).name
    assert source_of("hf:u/r/sub/x.gguf#branch", usual).url == "https://huggingface.co/u/r/resolve/branch/sub/x.gguf"
