"""The hash provider: the vectors that the recorded answers of the real program were made with."""

from __future__ import annotations

import json

import numpy as np
import pytest

from memory_tui.providers.base import identity_key
from memory_tui.providers.builtin import Scripted, hash_vector

SCRIPTED = Scripted()


@pytest.mark.parametrize("version", ["2026.3.13", "2026.2.26"])
def test_cosines_are_those_of_the_real_program(version: str, oracle_data) -> None:
    # Both versions were asked about one workspace with one chunking; a vector of zeros is scored otherwise there.
    lines = (oracle_data / "2026.3.13" / "default" / "chunks.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    chunks = dict(
        zip((row["id"] for row in rows), SCRIPTED.embed([row["text"] for row in rows], "document"), strict=True)
    )
    compared = 0
    for line in (oracle_data / version / "default" / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        query = SCRIPTED.embed([asked["query"].strip()], "query")[0]
        for hit in asked["debug"].get("vector", []):
            if chunks[hit["id"]].any():
                assert query @ chunks[hit["id"]] == pytest.approx(hit["score"], abs=1e-6), asked["query"]
                compared += 1
    assert compared > 500


def test_a_word_is_one_axis_and_words_add_up() -> None:
    one = hash_vector("router")
    assert np.count_nonzero(one) == 1
    assert abs(one).max() == 1
    assert np.array_equal(hash_vector("Router, router ROUTER!"), one)
    assert hash_vector("router gateway") @ one == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("text", ["", "  \n", "!?", "\u3000\u2003", "\x00"])
def test_text_without_a_token_gives_zeros(text: str) -> None:
    assert not SCRIPTED.embed([text], "query").any()


def test_every_character_beyond_ascii_is_a_token() -> None:
    assert np.count_nonzero(hash_vector("会议")) == 2
    assert np.array_equal(hash_vector("x\ud800"), hash_vector("x\ufffd"))


def test_rows_are_unit_float32_and_repeatable() -> None:
    vectors = SCRIPTED.embed(["a b c", "d"], "document")
    assert vectors.dtype == np.float32
    assert vectors.shape == (2, 256)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.array_equal(vectors, Scripted().embed(["a b c", "d"], "query"))
    assert SCRIPTED.embed([], "document").shape == (0, 256)


def test_identity_and_health() -> None:
    identity = SCRIPTED.identity
    assert (identity.provider, identity.model, identity.dims) == ("scripted", "hash-256", 256)
    assert identity.key == identity_key("scripted", "hash-256")
