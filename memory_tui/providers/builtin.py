"""The default provider: a static table of token vectors; no key, no network.

A text's vector is the unit-length sum of its tokens' vectors, so word order says nothing and a text costs microseconds.
The table was made from all-MiniLM-L6-v2; `table/NOTICE` says how, by which texts, under which licences.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.errors import ProviderError
from memory_tui.jsstring import well_formed
from memory_tui.providers.base import Identity, Kind, Provider, Vectors, fingerprint, in_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer

DIMS = 256
MODEL = "minilm-trained-256"
TABLE = Path(__file__).parent / "table" / "minilm-trained-256.npz"
UNKNOWN = "[UNK]"
LONGEST_WORD = 100
"""Characters of a word beyond which BERT's tokenizer takes it for unknown."""

# White space, ASCII punctuation, ideographs and full-width punctuation always end a word, so what lies between them is
# tokenised alike in every text and can be remembered. The cut at 4,096 characters, far beyond any word, bounds memory.
_PIECE = re.compile(
    r"[^ \t\r\n!-/:-@\[-`{-~\u3001\u3002\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff0f\uff1a-\uff20]{1,4096}|[^ \t\r\n]"
)
_LONGEST_PIECE = 4096
_LINES_A_PRODUCT = 8
_LONGEST_REMEMBERED = 64
"""Characters of a word between spaces, mostly Chinese, beyond which it is not likely to come again."""
REMEMBERED_CHARACTERS = 600_000
"""Of all words that one table remembers."""


def _means(piece: str) -> bool:
    """Tell whether a token says something: a word, a part of one, an ideograph or a Latin letter."""
    return piece.isalpha() and (len(piece) > 1 or unicodedata.name(piece, "").startswith(("LATIN", "CJK")))


class StaticTable:
    """The token vectors, `q` int8 (tokens, DIMS), and the `scale` float32 (tokens,) of its rows; and how text is cut
    into tokens, as the `tokenizers` package does. Safe to call from several threads.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        # Each part is compared with its checksum where it is read.
        with path.open("rb") as file, np.load(file) as parts:
            self.q: npt.NDArray[np.int8] = parts["q"]
            self.scale: npt.NDArray[np.float32] = parts["scale"]
            vocabulary = parts["vocabulary"].tobytes().decode().split("\n")
        if not len(self.q) == len(self.scale) == len(vocabulary):
            raise ValueError("its parts differ in length")
        self._ids = {token: at for at, token in enumerate(vocabulary)}
        self._longest = max(map(len, vocabulary))
        self._memory: dict[str, tuple[int, ...]] = {}
        """Token ids of words, each of which comes again mostly. It never changes, and a full one is replaced."""
        self._characters = 0

    # Text to tokens.

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """For what is not ASCII; to make it takes as long as a short question, and 6 MB."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        tokenizer = Tokenizer(models.WordPiece(self._ids, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    def share_known(self, text: str) -> float:
        """Return how much of `text` is known: the share of its letters that stand in tokens; 1 where it has no letters.

        A letter alone means nothing, unless it is an ideograph: of a script that its teacher hardly saw the table has
        single letters and no words. Latin letters count in any case.
        """
        # A syllable of Korean is cut into its letters.
        letters = sum(map(str.isalpha, unicodedata.normalize("NFD", text)))
        pieces = (token.removeprefix("##") for token in self._tokenizer.encode(well_formed(text)).tokens)
        return min(1.0, sum(map(len, filter(_means, pieces))) / letters) if letters else 1.0

    def ids(self, text: str) -> list[int]:
        """Return the token ids of `text`, without special tokens, not cut. No token reaches over a space."""
        words = text.replace("\t", " ").replace("\r", " ").replace("\n", " ").split(" ")
        memory = self._memory
        try:
            return list(chain.from_iterable(map(memory.__getitem__, words)))
        except KeyError:
            fresh = list({word for word in words if word not in memory})
        result = dict(zip(fresh, self.word_ids(fresh), strict=True))
        short = {word: ids for word, ids in result.items() if len(word) <= _LONGEST_REMEMBERED}
        memory.update(short)
        self._characters += sum(map(len, short))
        if self._characters > REMEMBERED_CHARACTERS:
            self._memory, self._characters = {}, 0
        return list(chain.from_iterable(result[word] if word in result else memory[word] for word in words))

    def word_ids(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the token ids of each of `words`, which hold no space."""
        # What is letters and digits alone is one piece.
        pieces = [
            (word,)
            if word.isalnum() and word.isascii() and len(word) <= _LONGEST_PIECE
            else tuple(_PIECE.findall(word))
            for word in words
        ]
        every = dict.fromkeys(chain.from_iterable(pieces))
        # Of printable ASCII, which is letters and digits or one other character, BERT changes the case alone.
        ids = {piece: self._parts(piece.lower()) for piece in every if piece.isascii() and piece.isprintable()}
        if others := [piece for piece in every if piece not in ids]:
            # One call of `encode`, because `encode_batch` starts a thread pool that warns when the process forks.
            encoding = self._tokenizer.encode(
                [well_formed(piece) for piece in others], is_pretokenized=True, add_special_tokens=False
            )
            ids.update(dict.fromkeys(others, ()))
            for at, token in zip(encoding.word_ids, encoding.ids, strict=True):
                if at is not None:
                    ids[others[at]] += (token,)
        return [tuple(chain.from_iterable(map(ids.__getitem__, parts))) for parts in pieces]

    def _parts(self, word: str) -> tuple[int, ...]:
        """WordPiece: the longest token that `word` begins with, then the longest that continues it, and so on."""
        ids, parts, before = self._ids, list[int](), ""
        if len(word) > LONGEST_WORD:
            return (ids[UNKNOWN],)
        while word:
            piece = before + word[: self._longest]
            while piece not in ids:
                piece = piece[:-1]
                if piece == before:
                    return (ids[UNKNOWN],)
            parts.append(ids[piece])
            word, before = word[len(piece) - len(before) :], "##"
        return tuple(parts)

    # Tokens to vectors.

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
            part, to = rows[: b - a], out[at * _LINES_A_PRODUCT : (at + 1) * _LINES_A_PRODUCT]
            part[...] = self.q.take(ids[a:b], 0)
            np.matmul(marks[: len(to), a:b], part, out=to)
        return out

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return float32 array (len(texts), DIMS) of unit vectors, or zeros for a text without any known token."""
        import numpy as np

        # One call for the tokens of all texts: of a word it would take longer than all else.
        out, ids = np.zeros((len(texts), DIMS), np.float32), list(map(self.ids, texts))
        rows = np.repeat(np.arange(len(ids)) * len(self.q), list(map(len, ids)))
        places = rows + np.fromiter(chain.from_iterable(ids), np.int64, len(rows))
        places, counts = np.unique(places, return_counts=True)
        rows, tokens = np.divmod(places, len(self.q))
        weights, vectors = self.scale[tokens] * counts.astype(np.float32), self.q[tokens]
        bounds = np.searchsorted(rows, np.arange(len(ids) + 1)).tolist()
        for row, (a, b) in zip(out, pairwise(bounds), strict=True):
            # einsum, not a BLAS product: one thread, and the same bits whatever else is in the batch.
            np.einsum("i,ij->j", weights[a:b], vectors[a:b], out=row)
        lengths = np.sqrt(np.einsum("ij,ij->i", out, out))
        out /= np.where(lengths > 0, lengths, 1)[:, None]
        return out


# They stay: without a provider no engine holds what its questions ask.
@cache
def static_table(path: Path = TABLE) -> StaticTable:
    """The table at `path`, opened in about 30 ms unless somebody has it.

    Raises ProviderError when it cannot be read, or is not what it was.
    """
    try:
        return StaticTable(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        message = f"The table of the built-in provider cannot be read ({path.name}: {error})."
        raise ProviderError(message, "Install memory-tui again, or use `--provider none`.") from error


class Builtin(Provider):
    """The provider "builtin". Opens its table at the first call of `embed`, in about 30 ms."""

    known = identity = Identity("builtin", MODEL, fingerprint(provider="builtin", model=MODEL), DIMS)
    detail = "embedded table, no network"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG002
        """Return float32 (len(texts), 256) of unit vectors, or zeros for a text without any known token.

        Notes and questions are embedded alike. Raises ProviderError when the table cannot be read.
        """
        return static_table().vectors(texts)


_TOKEN = re.compile(r"[a-z0-9_]+|[^\x00-\x7f]")


def hash_vector(text: str) -> Vectors:
    """Return the float32 unit vector (256,) of `text`, or zeros when it holds no token."""
    import numpy as np

    vector = np.zeros(DIMS)
    for token in _TOKEN.findall(well_formed(text).lower()):
        if not token.isspace():
            # The axis that the token counts on, and in which direction.
            n = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")
            vector[n % DIMS] += 1.0 if n >> 63 == 0 else -1.0
    length = np.sqrt(vector @ vector)
    return (vector / length if length > 0 else vector).astype(np.float32)


class Scripted(Provider):
    """The provider "scripted", for tests: shared words make texts alike, and nothing else does."""

    known = identity = Identity("scripted", "hash-256", fingerprint(provider="scripted", model="hash-256"), DIMS)
    detail = "hash vectors, no model"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG002
        """Return float32 (len(texts), 256) of unit vectors, or zeros for a text without any token."""
        return in_rows({at: hash_vector(text) for at, text in enumerate(texts)}, len(texts), DIMS)


PROVIDERS: Mapping[str, Callable[[], Provider]] = {"builtin": Builtin, "scripted": Scripted}
