"""Hold a local model in a process of its own, so that a crash of native code ends nothing else.

Run as a script with `local` or `onnx`, the path of the model and a number of threads; it knows nothing else of
memory-tui, reads the files of the model alone, and asks nobody. Each line of standard input is JSON with a `text` and
its `kind`; each answer is a line of JSON (`dims`, or `error`) and, after `dims`, that many little-endian float32. The
first answer, about the model itself, has no numbers.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
MOST_TOKENS = 512
"""Of a text that is embedded whole, whatever its model takes: attention costs the square of it."""
_RANK_POOLING = 4
_POOLING: Mapping[str, Callable[[Floats], Floats]] = {
    "cls": lambda out: out[0],
    "cls_token": lambda out: out[0],
    "mean": lambda out: out.mean(0),
    "mean_tokens": lambda out: out.mean(0),
    "mean_sqrt_len_tokens": lambda out: out.mean(0),
    "max_tokens": lambda out: out.max(0),
    "max": lambda out: out.max(0),
    "lasttoken": lambda out: out[-1],
}
"""sentence-transformers' names; the two means differ in length alone, and every vector gets length one."""
_WHOLE = "sentence_embedding"
"""The output of an export that pools by itself."""


class Model:
    """A loaded model. Raises ValueError when it makes no embeddings, and what its library does when it is none."""

    dims: int
    limit: int
    prompts: Mapping[str, str] = {}

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of `text`, with those that mark beginning and end."""
        raise NotImplementedError

    def vector(self, text: str, tokens: list[int]) -> Floats:
        """Return the vector of `text`, which has these `tokens`."""
        raise NotImplementedError

    def embed(self, text: str, kind: str = "document") -> Floats:
        """Return the vector of `text`; over the limit, the mean of its parts by their number of tokens."""
        total: Floats = np.zeros(self.dims, np.float32)
        for part, ids in self._parts(self.prompts.get(kind, ""), text):
            vector = self.vector(part, ids)
            total += vector * (len(ids) / (float(np.linalg.norm(vector)) or 1.0))
        return total

    def _parts(self, before: str, text: str) -> Iterator[tuple[str, list[int]]]:
        """Cut `text` into pieces that the model takes whole, at white space where there is any, with their tokens."""
        ids = self.tokens(before + text)
        if len(ids) <= self.limit or len(text) < 2:
            yield before + text, ids[: self.limit]
        else:
            cut = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
            yield from self._parts(before, text[:cut])
            yield from self._parts(before, text[cut:])


class LlamaModel(Model):
    """A GGUF file that llama.cpp runs."""

    def __init__(self, path: Path, threads: int) -> None:
        # Context, batch and micro-batch alike: other combinations abort the process with a longer text.
        sizes = dict.fromkeys(("n_ctx", "n_batch", "n_ubatch"), MOST_TOKENS)
        load = partial(
            importlib.import_module("llama_cpp").Llama,
            str(path),
            embedding=True,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
            **sizes,
        )
        try:
            # Flash attention doubles its speed; some models have no such code.
            self._llama = load(flash_attn=True)
        except ValueError:
            self._llama = load(flash_attn=False)
        if self._llama.pooling_type() == _RANK_POOLING:
            raise ValueError("it ranks texts and makes no vectors of them")
        self.dims = int(self._llama.n_embd())
        trained = self._llama._model.n_ctx_train()
        self.limit = min(MOST_TOKENS, trained) if trained > 0 else MOST_TOKENS

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of `text`."""
        ids: list[int] = self._llama.tokenize(text.encode("utf-8", "replace"))
        return ids

    def vector(self, text: str, tokens: list[int]) -> Floats:
        """Return the vector of `text`."""
        del tokens
        vector = np.asarray(self._llama.embed(text, normalize=False, truncate=True), np.float32)
        # A model that does not pool: one vector a token.
        return vector.mean(0) if vector.ndim == 2 else vector


class OnnxModel(Model):
    """An ONNX file in the form of sentence-transformers: files beside it say how token vectors become one, how long a
    text may be, and what is put before a question.
    """

    def __init__(self, path: Path, threads: int) -> None:
        here = path.parent
        folder = here if (here / "tokenizer.json").is_file() or here.name != "onnx" else here.parent
        self._pool, self.prompts, self.limit = _pooling(folder), _prompts(folder), _limit(folder)
        tokenizer = _json(folder / "tokenizer.json")
        runtime = importlib.import_module("onnxruntime")
        # Its Windows build reports to its maker unless it is told not to.
        runtime.disable_telemetry_events()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # Threads that wait give their core back instead of spinning.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        try:
            self._tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(json.dumps(tokenizer))
        except Exception as error:  # The library raises plain Exceptions, and has no class of its own.
            raise ValueError(f"tokenizer.json is missing or damaged: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._inputs = {
            each.name: np.int32 if "int32" in each.type else np.int64 for each in self._session.get_inputs()
        }
        unknown = sorted(self._inputs.keys() - {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
        if unknown or "input_ids" not in self._inputs:
            raise ValueError(f"it asks for {', '.join(unknown)}" if unknown else "it takes no input_ids")
        outputs = [each.name for each in self._session.get_outputs()]
        names = (_WHOLE, "last_hidden_state", "token_embeddings", outputs[0])
        self._output = next(name for name in names if name in outputs)
        modules = json.dumps(_json(folder / "modules.json"))
        if self._output != _WHOLE and "sentence_transformers.models.Dense" in modules:
            raise ValueError("a layer of it stands beside the ONNX file (Dense in modules.json)")
        self.dims = len(self.vector("a", self.tokens("a")))

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of `text`, with those that mark beginning and end."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def vector(self, text: str, tokens: list[int]) -> Floats:
        """Return the vector of a text with these `tokens`."""
        del text
        ids = np.array([tokens], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.arange(ids.shape[1])[None],
        }
        feed = {name: inputs[name].astype(kind) for name, kind in self._inputs.items()}
        out = np.asarray(self._session.run([self._output], feed)[0], np.float32)
        if out.ndim not in (2, 3) or out.shape[: out.ndim - 1] != ids.shape[: out.ndim - 1]:
            raise ValueError(f"it answers with the shape {'x'.join(map(str, out.shape))}")
        return out[0] if out.ndim == 2 else np.asarray(self._pool(out[0]), np.float32)


def _json(path: Path) -> Mapping[str, Any]:
    """Return the object that a JSON file holds, empty where there is none. Raises ValueError."""
    try:
        tree = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (OSError, RecursionError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error
    if isinstance(tree, list):
        return {"": tree}
    if not isinstance(tree, dict):
        raise ValueError(f"{path.name} holds no object")
    return tree


def _pooling(folder: Path) -> Callable[[Floats], Floats]:
    """Return how token vectors become one: by their mean where nothing is said. Raises ValueError."""
    config = _json(folder / "1_Pooling" / "config.json")
    modes = [key.removeprefix("pooling_mode_") for key, value in config.items() if value is True]
    # Newer files name one mode instead of saying yes or no to each.
    if isinstance(mode := config.get("pooling_mode"), str):
        modes = [mode]
    modes = [mode for mode in modes if mode in _POOLING or f"pooling_mode_{mode}" in config]
    if config and (len(modes) != 1 or modes[0] not in _POOLING):
        raise ValueError(f"it pools by {' and '.join(modes) or 'nothing'}, which is not supported")
    return _POOLING[modes[0] if modes else "mean"]


def _limit(folder: Path) -> int:
    """Return how many tokens the model takes, with those that mark beginning and end. Raises ValueError."""
    limits = (
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        _json(folder / "config.json").get("max_position_embeddings"),
    )
    # A limit of no more than the two marks says nothing.
    return min([MOST_TOKENS, *(limit for limit in limits if isinstance(limit, int) and limit > 2)])


def _prompts(folder: Path) -> dict[str, str]:
    """Return what is put before a text, by its kind. Raises ValueError."""
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        prompts = {}
    names = {"document": ("document", "passage", "search_document"), "query": ("query", "search_query")}
    return {kind: str(next((prompts[key] for key in keys if prompts.get(key)), "")) for kind, keys in names.items()}


def short(error: Exception) -> str:
    """Return what a library says, in one line and without onnxruntime's prefix."""
    words = " ".join(str(error).split()).rpartition("[ONNXRuntimeError] : ")[2]
    return words[:300].rstrip(". ") or type(error).__name__


def main() -> None:
    """Answer until standard input ends."""
    # What native code prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def answer(header: dict[str, object], data: bytes = b"") -> None:
        answers.write(json.dumps(header).encode() + b"\n" + data)
        answers.flush()

    kind, path, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    try:
        model = OnnxModel(path, threads) if kind == "onnx" else LlamaModel(path, threads)
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
