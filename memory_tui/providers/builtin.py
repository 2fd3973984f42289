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
from memory_tui.providers import Identity, Kind, Provider, Vectors, fingerprint, in_rows

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

        # zipfile compares each part with its checksum where it is read.
        with path.open("rb") as file, np.load(file) as parts:
            self.q: npt.NDArray[np.int8] = parts["q"]
            self.scale: npt.NDArray[np.float32] = parts["scale"]
            vocabulary = parts["vocabulary"].tobytes().decode().split("\n")
        if not len(self.q) == len(self.scale) == len(vocabulary):
            raise ValueError("its parts differ in length")
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._longest = max(map(len, vocabulary))
        self._memory: dict[str, tuple[int, ...]] = {}
        """Token ids of words, most of which come again. Ids of a word never change; a full memory is replaced."""
        self._characters = 0
        """Of all words in it together."""

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
        known = sum(len(piece) for piece in pieces if _means(piece))
        return min(1.0, known / letters) if letters else 1.0

    def ids(self, text: str) -> list[int]:
        """Return the token ids of `text`, without special tokens, not cut. No token reaches over a space."""
        words = text.replace("\t", " ").replace("\r", " ").replace("\n", " ").split(" ")
        # This one to the end of the call, as another thread may put an empty one in its place meanwhile.
        memory = self._memory
        try:
            # The usual case, as fast as Python goes: all words are remembered.
            return list(chain.from_iterable(map(memory.__getitem__, words)))
        except KeyError:
            new_words = list({word for word in words if word not in memory})
        new_ids = dict(zip(new_words, self.word_ids(new_words), strict=True))
        short = {word: ids for word, ids in new_ids.items() if len(word) <= _LONGEST_REMEMBERED}
        memory.update(short)
        self._characters += sum(map(len, short))
        if self._characters > REMEMBERED_CHARACTERS:
            self._memory, self._characters = {}, 0
        return list(chain.from_iterable(new_ids[word] if word in new_ids else memory[word] for word in words))

    def word_ids(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the token ids of each of `words`, which hold no space."""
        pieces_of_words: list[list[str]] = []
        for word in words:
            is_one_piece = word.isalnum() and word.isascii() and len(word) <= _LONGEST_PIECE
            pieces_of_words.append([word] if is_one_piece else _PIECE.findall(word))
        distinct = dict.fromkeys(chain.from_iterable(pieces_of_words))
        # A piece of printable ASCII is letters and digits, or one other character: BERT only lowers their case.
        ids = {piece: self._piece_ids(piece.lower()) for piece in distinct if piece.isascii() and piece.isprintable()}
        if foreign := [piece for piece in distinct if piece not in ids]:
            # One call of `encode`, because `encode_batch` starts a thread pool that warns when the process forks.
            encoding = self._tokenizer.encode(
                [well_formed(piece) for piece in foreign], is_pretokenized=True, add_special_tokens=False
            )
            # A piece of which nothing is left, such as an accent alone, has no token.
            ids.update(dict.fromkeys(foreign, ()))
            # Each token comes with the position of its piece, None for a token that belongs to none.
            for number, token in zip(encoding.word_ids, encoding.ids, strict=True):
                if number is not None:
                    ids[foreign[number]] += (token,)
        return [tuple(chain.from_iterable(map(ids.__getitem__, pieces))) for pieces in pieces_of_words]

    def _piece_ids(self, piece: str) -> tuple[int, ...]:
        """WordPiece: the longest token that `piece` begins with, then the longest that continues it, and so on."""
        if len(piece) > LONGEST_WORD:
            return (self._ids[UNKNOWN],)
        ids: list[int] = []
        sign = ""
        while piece:
            token = sign + piece[: self._longest]
            while token not in self._ids:
                token = token[:-1]
                # No token is left that could begin here.
                if token == sign:
                    return (self._ids[UNKNOWN],)
            ids.append(self._ids[token])
            piece = piece[len(token) - len(sign) :]
            # A token that continues a word is written behind this.
            sign = "##"
        return tuple(ids)

    # Tokens to vectors.

    def sums(self, ids: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> Vectors:
        """Return float32 (lines, DIMS): of each line the sum of the vectors of its tokens.

        `ids` are the tokens of all lines. `bounds` (lines + 1) tells where each line begins among them, and at last
        where the last one ends.
        """
        import numpy as np

        sums = np.empty((len(bounds) - 1, DIMS), np.float32)
        # One matrix of 8 rows serves every group of 8 lines: each group has its own columns, one a token, with its
        # scale in the row of its line, and 0 in the others. The product of these columns with the vectors of the tokens
        # is the sums of the lines, several times as quickly as `np.add.reduceat` has them.
        weights = np.zeros((_LINES_A_PRODUCT, len(ids)), np.float32)
        line_of_token = np.repeat(np.arange(len(sums)), np.diff(bounds))
        weights[line_of_token % _LINES_A_PRODUCT, np.arange(len(ids))] = self.scale[ids]
        # Where the tokens of each group of lines begin and end.
        spans = list(pairwise([*bounds[:-1:_LINES_A_PRODUCT].tolist(), int(bounds[-1])]))
        # One array for the vectors of every group: memory that is got anew for each comes from the system page by page.
        room = np.empty((max((end - start for start, end in spans), default=0), DIMS), np.float32)
        for number, (start, end) in enumerate(spans):
            vectors = room[: end - start]
            vectors[...] = self.q.take(ids[start:end], 0)
            lines = sums[number * _LINES_A_PRODUCT : (number + 1) * _LINES_A_PRODUCT]
            np.matmul(weights[: len(lines), start:end], vectors, out=lines)
        return sums

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return float32 array (len(texts), DIMS) of unit vectors, or zeros for a text without any known token."""
        import numpy as np

        ids = [self.ids(text) for text in texts]
        # One call of `unique` counts the tokens of all texts, as a number for each pair of text and token: a call for
        # each text would take longer than all else.
        offsets = np.repeat(np.arange(len(ids)) * len(self.q), [len(tokens) for tokens in ids])
        pairs = offsets + np.fromiter(chain.from_iterable(ids), np.int64, len(offsets))
        pairs, counts = np.unique(pairs, return_counts=True)
        # Sorted by text, then by token.
        text_numbers, tokens = np.divmod(pairs, len(self.q))
        weights = self.scale[tokens] * counts.astype(np.float32)
        vectors = self.q[tokens]
        # Where the tokens of each text begin, and at last where those of the last one end.
        bounds = np.searchsorted(text_numbers, np.arange(len(ids) + 1)).tolist()
        sums = np.zeros((len(texts), DIMS), np.float32)
        # `total` is the row of `sums` for a text, which is filled in place.
        for total, (start, end) in zip(sums, pairwise(bounds), strict=True):
            # einsum, not a BLAS product: one thread, and the same bits whatever else is in the batch.
            np.einsum("i,ij->j", weights[start:end], vectors[start:end], out=total)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        sums /= np.where(lengths > 0, lengths, 1)[:, None]
        return sums


# Kept by the process: under the provider none no engine holds the table, and yet its questions use it.
@cache
def static_table(path: Path = TABLE) -> StaticTable:
    """Return the table at `path`, opened in about 30 ms the first time.

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
    """Return the float32 unit vector (256,) of `text`, a sum over its words by their hashes; zeros without a word."""
    import numpy as np

    vector = np.zeros(DIMS)
    for token in _TOKEN.findall(well_formed(text).lower()):
        if not token.isspace():
            # The lowest bits are the axis that the token counts on, the highest one is the direction.
            digest = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")
            vector[digest % DIMS] += 1.0 if digest >> 63 == 0 else -1.0
    length = np.sqrt(vector @ vector)
    return (vector / length if length > 0 else vector).astype(np.float32)


class Scripted(Provider):
    """The provider "scripted", for tests: shared words make texts alike, and nothing else does."""

    known = identity = Identity("scripted", "hash-256", fingerprint(provider="scripted", model="hash-256"), DIMS)
    detail = "hash vectors, no model"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG002
        """Return float32 (len(texts), 256) of unit vectors, or zeros for a text without any token."""
        return in_rows({position: hash_vector(text) for position, text in enumerate(texts)}, len(texts), DIMS)


PROVIDERS: Mapping[str, Callable[[], Provider]] = {"builtin": Builtin, "scripted": Scripted}
