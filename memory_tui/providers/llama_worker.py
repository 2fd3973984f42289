"""The process that holds a local model, so that a crash of native code ends nothing else.

Run as a script with the path of a GGUF file and a number of threads; it knows nothing else of memory-tui. Each line of
standard input is JSON with `texts`; each answer is a line of JSON (`dims`, or `error`) and, after `dims`, that many
little-endian float32 for each text. The first answer, about the model itself, has no numbers.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import sys
from typing import Any, BinaryIO

MOST_TOKENS = 512
"""Context, batch and micro-batch alike: other combinations abort the process with a longer text (llama.cpp)."""
_RANK_POOLING = 4


class Model:
    """A loaded GGUF file. Raises ValueError when it cannot be loaded or makes no embeddings."""

    def __init__(self, path: str, threads: int, flash_attention: bool) -> None:
        self._llama: Any = importlib.import_module("llama_cpp").Llama(
            path,
            embedding=True,
            n_ctx=MOST_TOKENS,
            n_batch=MOST_TOKENS,
            n_ubatch=MOST_TOKENS,
            n_threads=threads,
            n_threads_batch=threads,
            flash_attn=flash_attention,
            verbose=False,
        )
        if self._llama.pooling_type() == _RANK_POOLING:
            raise ValueError("it ranks texts and makes no vectors of them")
        self.dims = int(self._llama.n_embd())
        trained = self._llama._model.n_ctx_train()
        self.limit = min(MOST_TOKENS, trained) if trained > 0 else MOST_TOKENS

    def embed(self, text: str) -> list[float]:
        """The vector of `text`; of a text over the limit, the mean of its parts by their number of tokens."""
        total, tokens = [0.0] * self.dims, 0
        for part, count in self._parts(text):
            vector = self._llama.embed(part, normalize=False, truncate=True)
            if vector and isinstance(vector[0], list):  # A model that does not pool: one vector a token.
                vector = [sum(column) / len(vector) for column in zip(*vector, strict=True)]
            total = [so_far + count * value for so_far, value in zip(total, vector, strict=True)]
            tokens += count
        return [value / max(tokens, 1) for value in total]

    def _parts(self, text: str) -> list[tuple[str, int]]:
        """`text` in pieces that the model takes whole, cut at white space where there is any, with their tokens."""
        count = len(self._llama.tokenize(text.encode("utf-8", "replace")))
        if count <= self.limit or len(text) < 2:
            return [(text, count)]
        cut = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
        return [*self._parts(text[:cut]), *self._parts(text[cut:])]


def load(path: str, threads: int) -> Model:
    """The model with flash attention, which doubles its speed, or without where it has no such code."""
    try:
        return Model(path, threads, flash_attention=True)
    except ValueError:
        return Model(path, threads, flash_attention=False)


def main() -> None:
    """Answer until standard input ends."""
    # What native code prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        model = load(sys.argv[1], int(sys.argv[2]))
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _say(answers, {"error": str(error) or type(error).__name__})
        return
    _say(answers, {"dims": model.dims, "limit": model.limit})
    for line in sys.stdin.buffer:
        try:
            vectors = array.array("f", [one for text in json.loads(line)["texts"] for one in model.embed(text)])
        except (RuntimeError, ValueError) as error:
            _say(answers, {"error": str(error) or type(error).__name__})
            continue
        if sys.byteorder == "big":
            vectors.byteswap()
        _say(answers, {"dims": model.dims}, vectors.tobytes())


def _say(answers: BinaryIO, header: dict[str, object], data: bytes = b"") -> None:
    answers.write(json.dumps(header).encode() + b"\n" + data)
    answers.flush()


if __name__ == "__main__":
    main()
