"""The embedded default provider: its vectors, its table, and text that nobody should have to think about."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from memory_tui.errors import ProviderError
from memory_tui.jsstring import well_formed
from memory_tui.providers.builtin import TABLE, Builtin, Scripted, hash_vector, static_table

BUILTIN = Builtin()


class PlainTable:
    """The rule as it is documented, without any shortcut: sum the rows of the tokens, divide by the length."""

    def __init__(self, q, scale, vocabulary):
        self.rows = q.astype(np.float64) * scale[:, None]
        ids = {token: at for at, token in enumerate(vocabulary)}
        self.known = vocabulary[:: len(vocabulary) // 500]
        self.unknown = ids.setdefault("[UNK]", len(ids))
        self.tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
        self.tokenizer.normalizer = normalizers.BertNormalizer()
        self.tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def vector(self, text):
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        total = self.rows[[at for at in ids if at != self.unknown]].sum(axis=0)
        return total / (np.linalg.norm(total) or 1)


def _tokens(vocabulary):
    return vocabulary.tobytes().decode().split("\n")


with np.load(TABLE) as shipped:
    PLAIN = PlainTable(shipped["q"], shipped["scale"], _tokens(shipped["vocabulary"]))


WORDS = """
café naïve Straße e\u0301 \u0301 \u0338 = router ERR_x-42 [CLS] ##ing Σ İ ﬁ 会议 。 ，
한국어 らーめん 🙂 👩\u200d💻 𠀀 豈 \x00 \ufeff
"""
PIECES = st.sampled_from([*WORDS.split(), "x" * 101, " ", "\n", "\t", "\u00a0", "\u3000", "\u2028", "\x0b", "\x85"])


@given(st.lists(st.one_of(PIECES, st.text(max_size=8))).map("".join))
def test_remembering_pieces_changes_no_vector(text):
    assert np.allclose(BUILTIN.embed([text], "document")[0], PLAIN.vector(well_formed(text)), atol=1e-5)


ASCII = st.one_of(
    st.text(st.characters(max_codepoint=0x7F), max_size=12),
    st.text("abcdefABC0189_-#", min_size=1, max_size=30),
    st.lists(st.sampled_from([*PLAIN.known, "x" * 100, "y" * 101, "un", "##s"]), max_size=4).map("".join),
)


@given(st.lists(st.one_of(ASCII, PIECES), max_size=6).map(" ".join))
def test_tokens_are_those_of_the_tokenizers_package(text):
    ids = static_table().ids(text)
    assert ids == PLAIN.tokenizer.encode(well_formed(text.replace("\n", " ")), add_special_tokens=False).ids


def test_a_vector_has_the_same_bits_alone_in_a_batch_and_in_another_instance():
    texts = [f"note {n}: the router of room {n * 7} was moved, 会议 {n}" for n in range(50)]
    batch = BUILTIN.embed(texts, "document")
    alone = np.concatenate([Builtin().embed([texts[0]], "query"), *(BUILTIN.embed([t], "query") for t in texts[1:])])
    assert batch.tobytes() == alone.tobytes()
    assert BUILTIN.embed(texts[::-1], "document")[::-1].tobytes() == batch.tobytes()


@pytest.mark.parametrize(("text", "length"), [("some words " * 900_000, 1), ("\ud800" * 5_000_000, 0)])
def test_ten_megabytes_are_embedded_whole(text, length):
    assert np.linalg.norm(BUILTIN.embed([text], "document")) == pytest.approx(length, abs=1e-6)


def _without_last_row(path):
    with np.load(TABLE) as data:
        np.savez(path, q=data["q"][:-1], scale=data["scale"], vocabulary=data["vocabulary"])


def _with_a_bit_turned(after, far):
    def spoil(path):
        whole = bytearray(TABLE.read_bytes())
        whole[whole.index(after) + far] ^= 4
        path.write_bytes(whole)

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: None,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a table" * 100),
        lambda path: path.write_bytes(TABLE.read_bytes()[:500_000]),
        lambda path: np.savez(path, q=np.zeros(3)),
        _without_last_row,
        _with_a_bit_turned(b"scale.npy", 1_000),
        _with_a_bit_turned(b"q.npy", 1_000_000),
    ],
    ids=["missing", "empty", "noise", "cut short", "other arrays", "uneven", "scale", "vectors"],
)
def test_a_table_that_cannot_be_read_is_said_so(spoil, tmp_path):
    path = tmp_path / "table.npz"
    spoil(path)
    with pytest.raises(ProviderError, match=r"built-in provider cannot be read \(table\.npz") as caught:
        static_table(path).vectors(["word"])
    assert caught.value.next_step


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_forks_after_embedding_gets_no_warning_and_no_setting():
    code = (
        "import os\n"
        "from memory_tui.providers.builtin import Builtin\n"
        "provider = Builtin(); provider.embed(['a few words'] * 300, 'document')\n"
        "assert 'TOKENIZERS_PARALLELISM' not in os.environ\n"
        "child = os.fork()\n"
        "provider.embed(['other words, never seen'], 'document')\n"
        "raise SystemExit(0 if child == 0 else os.waitpid(child, 0)[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""


def test_the_table_ships_with_its_licence_and_stays_small():
    assert TABLE.stat().st_size <= 8_500_000
    notice = (TABLE.parent / "NOTICE").read_text(encoding="utf-8")
    assert all(word in notice for word in ("all-MiniLM-L6-v2", "sentence-transformers", "Apache License", "changed"))
    licence = (TABLE.parent / "LICENSE-APACHE-2.0.txt").read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_a_word_is_one_axis_and_words_add_up():
    one = hash_vector("router")
    assert (np.count_nonzero(one), abs(one).max()) == (1, 1)
    assert np.array_equal(hash_vector("Router, router ROUTER!"), one)
    assert hash_vector("router gateway") @ one == pytest.approx(0.5**0.5)
    assert np.count_nonzero(hash_vector("会议")) == 2
    for text in ("", "  \n", "!?", "\u3000\u2003", "\x00"):
        assert not Scripted().embed([text], "query").any()
