"""The default provider: a static table of token vectors; no key, no network.

A text's vector is the unit-length sum of its tokens' vectors, so word order says nothing and a text costs microseconds.
The table was made from all-MiniLM-L6-v2; `table/NOTICE` says how, by which texts, under which licences.
"""

from __future__ import annotations

import re
import struct
import threading
import time
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from memory_tui.core.errors import ProviderError
from memory_tui.core.jsstring import well_formed
from memory_tui.providers.base import Health, Identity, Vectors, identity_key
from memory_tui.providers.registry import ProviderRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer

DIMS = 256
MODEL = "minilm-trained-256"
TABLE = Path(__file__).parent / "table" / "minilm-trained-256.npz"
UNKNOWN = "[UNK]"
MAX_INPUT_BYTES = 8000
_NPY_HEADER = 128
"""Bytes before the numbers of an array, at most."""
LONGEST_WORD = 100
"""Characters of a word beyond which BERT's tokenizer takes it for unknown."""

# White space, ASCII punctuation, ideographs and full-width punctuation always end a word, so what lies between them is
# tokenised alike in every text and can be remembered. The cut at 4,096 characters, far beyond any word, bounds memory.
_PIECE = re.compile(
    r"[^ \t\r\n!-/:-@\[-`{-~\u3001\u3002\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff0f\uff1a-\uff20]{1,4096}|[^ \t\r\n]"
)
_LONGEST_PIECE = 4096
_PIECES_A_CALL = 4096
_MANY = 5_000
"""Words that one process cuts before the package does it, which costs as much to load as a thousand of them."""
_REMEMBERED_CHARACTERS = 600_000
_LINES_A_PRODUCT = 8


class _Words:
    """Text to token ids, as the `tokenizers` package cuts it; each distinct piece of text is cut once.

    Safe to call from several threads: a remembered piece never changes, and a full memory is replaced, not emptied.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        from memory_tui.core.tokens import WordMemory

        self._ids = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
        self._longest = max(map(len, vocabulary))
        self._known: dict[str, tuple[int, ...]] = {}
        self._characters = 0
        self._cut = 0
        self.line_ids = WordMemory(self.of_words).of
        """Token ids of a text, without special tokens, not cut, with END_OF_LINE where one is."""

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """For what is not ASCII, and for many words; to make it takes as long as a short question, and 6 MB."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        tokenizer = Tokenizer(models.WordPiece(self._ids, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - the package has no types for it
        return self._tokenizer.model

    def ids(self, text: str) -> list[int]:
        """Token ids of `text`, without special tokens, not cut."""
        return self.line_ids(text.replace("\n", " "))

    def known(self, text: str) -> float:
        """How much of `text` is known: the share of its letters that stand in tokens; 1 where it has no letters.

        A letter alone means nothing, unless it is an ideograph: of a script that its teacher hardly saw the table has
        single letters and no words. Latin letters count in any case.
        """
        # A syllable of Korean is cut into its letters.
        letters = sum(map(str.isalpha, unicodedata.normalize("NFD", text)))
        pieces = (token.removeprefix("##") for token in self._tokenizer.encode(well_formed(text)).tokens)
        held = sum(map(len, filter(_means, pieces)))
        return min(1.0, held / letters) if letters else 1.0

    def of_words(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Token ids of each of `words`, which hold no space; who asks remembers them."""
        # What is letters and digits alone is one piece.
        several = {
            word: _PIECE.findall(word)
            for word in words
            if not (word.isalnum() and word.isascii() and len(word) <= _LONGEST_PIECE)
        }
        known = self._known
        pieces = chain(chain.from_iterable(several.values()), (word for word in words if word not in several))
        fresh = list({piece for piece in pieces if piece not in known})
        for start in range(0, len(fresh), _PIECES_A_CALL):
            known.update(self._tokenise(fresh[start : start + _PIECES_A_CALL]))
        self._characters += sum(map(len, fresh))
        if self._characters > _REMEMBERED_CHARACTERS:
            self._known, self._characters = {}, 0
        return [
            tuple(chain.from_iterable(map(known.__getitem__, several[word]))) if word in several else known[word]
            for word in words
        ]

    def _tokenise(self, pieces: list[str]) -> dict[str, tuple[int, ...]]:
        # Of printable ASCII, which is letters and digits or one other character, BERT changes the case alone.
        plain = [piece for piece in pieces if piece.isascii() and piece.isprintable()]
        self._cut += len(plain)
        cut = self._parts if self._cut < _MANY else self._parts_by_package
        known = {piece: cut(piece.lower()) for piece in plain}
        others = [piece for piece in pieces if piece not in known]
        if not others:
            return known
        # One call of `encode`, because `encode_batch` starts a thread pool that warns when the process forks.
        encoding = self._tokenizer.encode(
            [well_formed(piece) for piece in others], is_pretokenized=True, add_special_tokens=False
        )
        found: list[list[int]] = [[] for _ in others]
        for at, token in zip(encoding.word_ids, encoding.ids, strict=True):
            if at is not None:
                found[at].append(token)
        return known | dict(zip(others, map(tuple, found), strict=True))

    def _parts_by_package(self, word: str) -> tuple[int, ...]:
        """`_parts` in a third of the time."""
        return tuple([token.id for token in self._model.tokenize(word)])

    def _parts(self, word: str) -> tuple[int, ...]:
        """WordPiece: the longest token that `word` begins with, then the longest that continues it, and so on."""
        ids, length = self._ids, len(word)
        if length > LONGEST_WORD:
            return (ids[UNKNOWN],)
        found, start, before = [], 0, ""
        while start < length:
            for end in range(min(length, start + self._longest), start, -1):
                if (token := ids.get(before + word[start:end])) is not None:
                    break
            else:
                return (ids[UNKNOWN],)
            found.append(token)
            start, before = end, "##"
        return tuple(found)


def _means(piece: str) -> bool:
    """Whether a token says something: a word, a part of one, an ideograph or a Latin letter."""
    if not piece.isalpha():
        return False
    return len(piece) > 1 or unicodedata.name(piece, "").startswith(("LATIN", "CJK"))


class _Part(NamedTuple):
    """A member of an npz file: where its bytes begin and end in the file, and their checksum."""

    first: int
    last: int
    crc: int


_MEMBER = struct.Struct("<4s2xHH4xIII2H")
_SIZE64 = struct.Struct("<2HQ")
_ELSEWHERE = 0xFFFFFFFF


def _parts(whole: npt.NDArray[np.uint8]) -> dict[str, _Part]:
    """The members of an npz file that is not compressed, by name. Raises ValueError, struct.error."""
    found, at = {}, 0
    while len(whole) - at >= _MEMBER.size:
        signature, flags, method, crc, _, size, name, extra = _MEMBER.unpack_from(whole.data, at)
        if signature != b"PK\3\4":
            break
        begin = at + _MEMBER.size
        first = begin + name + extra
        if size == _ELSEWHERE:
            kind, _, size = _SIZE64.unpack_from(whole.data, begin + name)
            if kind != 1:
                raise ValueError("a size is missing")
        if flags & 8 or method:
            raise ValueError("it is compressed")
        at = first + size
        found[whole[begin : begin + name].tobytes().decode()] = _Part(first, at, crc)
    return found


class StaticTable:
    """The token vectors: `q` int8 (tokens, DIMS), mapped so that processes share it, and the `scale` float32 (tokens,)
    of its rows.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        self._whole: npt.NDArray[np.uint8] = np.asarray(np.memmap(path, np.uint8, "r"))
        self._parts = _parts(self._whole)
        self._checked = set[str]()
        # A token that has another's vector misleads one question, where no number is left every score is lost.
        self.check("scale.npy", "vocabulary.npy")
        self.q: npt.NDArray[np.int8] = self._array("q", np.dtype(np.int8))
        self.scale: npt.NDArray[np.float32] = self._array("scale", np.dtype(np.float32))
        vocabulary = self._array("vocabulary", np.dtype(np.uint8)).tobytes().decode().split("\n")
        if not len(self.q) == len(self.scale) == len(vocabulary):
            raise ValueError("its parts differ in length")
        words = _Words(vocabulary)
        self.ids, self.line_ids, self.known = words.ids, words.line_ids, words.known
        """Token ids of a text; the same with `tokens.END_OF_LINE` where a line ends; how much of it is known."""
        self.word_ids = words.of_words
        """Token ids of each of some words."""

    def _array(self, name: str, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """An array of the file, mapped where its bytes lie as they have to. Raises KeyError, ValueError."""
        import io
        import tokenize

        from numpy.lib import format as npy

        part = self._parts[f"{name}.npy"]
        file = io.BytesIO(self._whole[part.first : part.first + _NPY_HEADER].tobytes())
        npy.read_magic(file)
        try:
            shape, _, found = npy.read_array_header_1_0(file)
        except (SyntaxError, tokenize.TokenError) as error:
            # NumPy takes a header that is no Python for one that an old Python wrote, and lets its parser speak.
            raise ValueError(f"{name} has no header: {error.args[0]}") from error
        if found != kind:
            raise ValueError(f"{name} holds {found}")
        data = self._whole[part.first + file.tell() : part.last]
        return (data if found.itemsize == 1 else data.copy()).view(found).reshape(shape)

    def check(self, *names: str) -> None:
        """Compare the parts `names`, or all, with their checksums, each once. Raises ValueError, KeyError."""
        import zlib

        for name in {*(names or self._parts)} - self._checked:
            part = self._parts[name]
            if zlib.crc32(self._whole[part.first : part.last].data) != part.crc:
                raise ValueError(f"{name} is damaged")
            self._checked.add(name)

    def rows(self, ids: npt.NDArray[np.int64]) -> Vectors:
        """Float32 array (len(ids), DIMS): the vectors of tokens."""
        return self.q[ids] * self.scale[ids][:, None]

    def sums(self, ids: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> Vectors:
        """Float32 array (len(bounds) - 1, DIMS): the summed vectors of `ids` from each of `bounds` to the next."""
        import numpy as np

        # A product with marks sums up several times as quickly as `reduceat` does, for a few lines at a time.
        out, places = np.empty((len(bounds) - 1, DIMS), np.float32), bounds.tolist()
        marks = np.zeros((_LINES_A_PRODUCT, len(ids)), np.float32)
        marks[np.repeat(np.arange(len(out)) % _LINES_A_PRODUCT, np.diff(bounds)), np.arange(len(ids))] = self.scale[ids]
        few = [*places[:-1:_LINES_A_PRODUCT], places[-1]]
        # One room for all of them: memory that is got anew for each comes from the system page by page.
        rows = np.empty((max(b - a for a, b in pairwise(few)) if len(few) > 1 else 0, DIMS), np.float32)
        for at, (a, b) in enumerate(pairwise(few)):
            own, to = rows[: b - a], out[at * _LINES_A_PRODUCT : (at + 1) * _LINES_A_PRODUCT]
            own[...] = self.q.take(ids[a:b], 0)
            np.matmul(marks[: len(to), a:b], own, out=to)
        return out

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Float32 array (len(texts), DIMS) of unit vectors, or zeros for a text without any known token."""
        import numpy as np

        out = np.zeros((len(texts), DIMS), np.float32)
        for row, text in zip(out, texts, strict=True):
            tokens, counts = np.unique(np.array(self.ids(text), np.intp), return_counts=True)
            # einsum, not a BLAS product: one thread, and the same bits whatever else is in the batch.
            np.einsum("i,ij->j", self.scale[tokens] * counts.astype(np.float32), self.q[tokens], out=row)
        lengths = np.sqrt(np.einsum("ij,ij->i", out, out))
        out /= np.where(lengths > 0, lengths, 1)[:, None]
        return out


_loading = threading.Lock()
_loaded: dict[Path, StaticTable] = {}
"""The tables that were opened. They stay: without a provider no engine holds what its questions ask."""


def static_table(path: Path = TABLE, *, checked: bool = False) -> StaticTable:
    """The table at `path`, opened in about 20 ms unless somebody has it; with `checked` held against all its checksums.

    Raises ProviderError when it cannot be read, or is not what it was.
    """
    with _loading:
        found = _loaded.get(path)
        try:
            if found is None:
                found = _loaded[path] = StaticTable(path)
            if checked:
                found.check()
        except (OSError, ValueError, KeyError, struct.error) as error:
            message = f"The table of the built-in provider cannot be read ({path.name}: {error})."
            raise ProviderError(message, "Install memory-tui again, or use `--provider none`.") from error
        return found


class Builtin:
    """The provider "builtin". Opens its table at the first call of `embed`, in about 20 ms."""

    def __init__(self, table: Path = TABLE) -> None:
        self._path = table
        self._table: StaticTable | None = None
        self._health = Health(True, "ready, loads at first use")

    @property
    def identity(self) -> Identity:
        """The space of this table's vectors."""
        return Identity("builtin", MODEL, identity_key("builtin", MODEL), DIMS)

    @property
    def max_input_bytes(self) -> int:
        """A limit on chunks, as other providers have; longer text is embedded whole too."""
        return MAX_INPUT_BYTES

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Float32 array (len(texts), 256) of unit vectors, or zeros for a text without any known token.

        Notes and questions are embedded alike; what is stored is made by a table that was held against its checksums.
        Raises ProviderError when it cannot be read.
        """
        table = self._ready(checked=kind == "document")
        start = time.perf_counter()
        vectors = table.vectors(texts)
        self._health = Health(True, "embedded table, no network", (time.perf_counter() - start) * 1000)
        return vectors

    def health(self) -> Health:
        """The state after the last call."""
        return self._health

    def close(self) -> None:
        """Let the table go; a later `embed` takes it again."""
        self._table = None

    def _ready(self, *, checked: bool) -> StaticTable:
        table = self._table
        if table is None or checked:
            try:
                table = self._table = static_table(self._path, checked=checked)
            except ProviderError as error:
                self._health = Health(False, error.message)
                raise
        return table


BUILTIN = ProviderRow(
    "builtin",
    "the built-in table",
    make=lambda _: Builtin(),
    model=MODEL,
    dims={MODEL: DIMS},
    auto=6,
    asked_model=lambda _: MODEL,
)
