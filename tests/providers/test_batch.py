"""The calls to a batch service, in each provider's wire format, against a server that plays it."""

import contextlib
import socket
import sys

import pytest

from memory_tui.providers import Cause, ProviderFailure, http, registry
from memory_tui.providers.builtin import hash_vector
from memory_tui.providers.http import BatchService, JobStatus
from memory_tui.providers.registry import BatchOptions
from tests.support.batch_server import BatchHandler, BatchPlay, id_of, refused, text_of
from tests.support.embed import KEY, settings_for
from tests.support.provider_server import echo_headers, serving, status

TEXTS = [("a" * 64, "alpha"), ("b" * 64, "beta ü"), ("c" * 64, "gamma\nsecond line")]
NAMES = ("openai", "gemini")


@pytest.fixture
def play():
    with serving(BatchPlay(), BatchHandler) as running:
        yield running


@pytest.fixture
def service_of(play):
    with contextlib.ExitStack() as stack:

        def make(name="openai", **more):
            base = f"{play.url}/{'v1beta' if name == 'gemini' else 'v1'}"
            settings = settings_for(play, name, base_url=base, jobs=BatchOptions(enabled=True), **more)
            return stack.enter_context(contextlib.closing(BatchService(registry.wire_of(name, settings), settings)))

        yield make


def fetched(service, job):
    return service.fetch(service.status(job), 256)


@pytest.mark.parametrize("name", NAMES)
def test_texts_go_up_and_their_vectors_come_back_by_id_whatever_the_order(play, service_of, name):
    play.states = ("validating", "in_progress", "completed")
    play.change = lambda lines: (lines[::-1], [])
    service = service_of(name)
    job = service.create(service.upload(TEXTS))
    first, second = service.status(job), service.status(job)
    assert (first.phase, second.phase) == ("running", "running")
    vectors, errors = fetched(service, job)
    assert set(vectors) == {text_id for text_id, _ in TEXTS}
    for text_id, text in TEXTS:
        assert vectors[text_id] == pytest.approx(hash_vector(text), abs=1e-6)
    assert errors == {}


def test_what_is_sent_and_that_the_key_goes_along(play, service_of):
    text_id = "a" * 64
    service = service_of(output_dimensionality=256)
    service.create(service.upload(TEXTS))
    purpose, file = play.forms[0].get_payload()
    assert (purpose.get_payload(), file.get_content_type()) == ("batch", "application/jsonl")
    assert file.get_filename().endswith(".jsonl")
    assert [(id_of(line), text_of(line)) for line in play.requests()] == TEXTS
    body = {"model": "text-embedding-3-small", "input": "alpha", "dimensions": 256}
    line = {"custom_id": text_id, "method": "POST", "url": "/v1/embeddings", "body": body}
    assert (play.requests()[0], play.jobs[0].body["endpoint"], play.jobs[0].body["completion_window"]) == (
        *(line, "/v1/embeddings", "24h"),
    )
    play.headers.clear()
    service = service_of("gemini")
    fetched(service, service.create(service.upload(TEXTS)))
    content = {"content": {"parts": [{"text": "alpha"}]}, "taskType": "RETRIEVAL_DOCUMENT"}
    assert play.requests(1)[0] == {"key": text_id, "request": {**content, "model": "models/gemini-embedding-001"}}
    assert {call for call, _ in play.headers} == {"POST /files", "POST /batches", "GET /batches", "GET /files"}
    assert all(headers["X-Goog-Api-Key"] == KEY for _, headers in play.headers)


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_failed_are_missing_or_make_no_sense_are_told_apart(play, service_of, name):
    play.change = lambda lines: (
        ["not json", '{"no": "id"}', "[1]", "", lines[0], refused(lines[0]), lines[0]],
        [refused(lines[1])],
    )
    service = service_of(name)
    vectors, errors = fetched(service, service.create(service.upload(TEXTS)))
    assert set(vectors) == {"a" * 64}
    if name != "gemini":  # which has one file for both
        assert errors == {"b" * 64: "too long"}


def test_a_vector_that_is_none_is_an_error_of_its_line_alone(play, service_of):
    def spoilt(lines):
        data = [line["response"]["body"]["data"][0] for line in lines]
        data[0]["embedding"] = [0.0] * 256
        data[1]["embedding"] = [1.0] * 3
        return lines, []

    play.change = spoilt
    service = service_of()
    vectors, errors = fetched(service, service.create(service.upload(TEXTS)))
    assert set(vectors) == {"c" * 64}
    assert "zeros" in errors["a" * 64]
    assert "3 numbers where 256" in errors["b" * 64]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("state", ["failed", "expired", "cancelled"])
def test_bad_ends_are_told_and_bring_what_was_done(play, service_of, name, state):
    play.states = (state,)
    play.change = lambda lines: (lines[:1], [])
    service = service_of(name)
    job = service.create(service.upload(TEXTS))
    look = service.status(job)
    assert look.phase == state
    assert look.why == ("the input file is wrong" if state == "failed" else "")
    assert len(fetched(service, job)[0]) == (0 if state == "failed" else 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_is_found_by_its_file(play, service_of, name):
    service = service_of(name)
    file = service.upload(TEXTS)
    assert service.find(file) == ""
    job = service.create(file)
    assert service.find(file) == job
    service.cancel(job)
    assert play.cancelled == ["job_0"]


def test_a_file_kept_elsewhere_is_fetched_without_the_key(play, service_of):
    play.redirect = True
    service = service_of()
    assert len(fetched(service, service.create(service.upload(TEXTS)))[0]) == 3
    with_key = {call: "Authorization" in headers for call, headers in play.headers}
    assert with_key["GET /files"]
    assert not with_key["GET /stored"]


@pytest.mark.parametrize("answer", [{"id": "../../elsewhere"}, {"id": "a/b"}, {"id": "x?y"}, {"id": 3}, {}, []])
def test_a_name_that_could_lead_elsewhere_is_not_used(play, service_of, answer):
    play.fail("POST /files", status(200, answer))
    service = service_of()
    with pytest.raises(ProviderFailure) as caught:
        service.upload(TEXTS)
    assert caught.value.state is Cause.MALFORMED


def test_no_error_shows_the_key(play, service_of):
    play.fail("POST /files", echo_headers(401))
    service = service_of()
    with pytest.raises(ProviderFailure) as caught:
        service.upload(TEXTS)
    assert caught.value.state is Cause.BAD_KEY
    assert KEY not in caught.value.message
    play.change = lambda lines: ([refused(lines[0], f"refused for Bearer {KEY}")], [])
    errors = fetched(service, service.create(service.upload(TEXTS)))[1]
    assert "refused for" in errors["a" * 64]
    assert KEY not in errors["a" * 64]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse what finds no place in the queue")
def test_a_host_that_takes_no_connection_is_not_reached_and_no_silent_server(play, service_of, monkeypatch):
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.2)
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        # The one place in the queue is taken: the next connection waits for ever.
        full.listen(0)
        first.connect(full.getsockname())
        play.url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(ProviderFailure) as caught:
            service_of().fetch(JobStatus("completed", ("results",)), 256)
    assert caught.value.state is Cause.NETWORK
    assert "cannot be reached" in caught.value.message
