"""Hold a local model in a process of its own, so that a crash of native code ends nothing else.

Run as a script with `local` or `onnx`, the path of the model and a number of threads; it knows nothing else of
memory-tui, reads the files of the model alone, and asks nobody. Each line of standard input is JSON with `texts` and
their `kind`; each answer is a line of JSON (`dims`, or `error`) and, after `dims`, that many little-endian float32 for
each text. The first answer, about the model itself, has no numbers.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

MOST_TOKENS = 512
"""Of a text that is embedded whole, whatever its model takes: attention costs the square of it."""
_TOKENS_A_RUN = 512
"""Padding counted; larger runs are slower on a processor, and take more memory."""
_RANK_POOLING = 4
_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_cls": "cls",
    "pooling_mode_mean": "mean",
    "pooling_mode_mean_sqrt_len": "mean",
    "pooling_mode_max": "max",
    "pooling_mode_lasttoken": "last",
}
"""sentence-transformers' names; the two means differ in length alone, and every vector gets length one."""
_WHOLE = "sentence_embedding"
"""The output of an export that pools by itself."""
Floats = npt.NDArray[np.float32]
Batch = npt.NDArray[np.int64]


class Model:
    """A loaded model. Raises ValueError when it cannot be loaded or makes no embeddings."""

    dims: int
    limit: int

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of `text`."""
        raise NotImplementedError

    def vectors(self, parts: Sequence[tuple[str, list[int]]]) -> Iterator[tuple[int, Floats]]:
        """Make the vector of each of `parts` (text, tokens), with its position, in any order."""
        raise NotImplementedError

    def embed(self, texts: Sequence[str], before: str = "") -> Floats:
        """Return the vectors of `texts`; of a text over the limit, the mean of its parts by their number of tokens."""
        parts = [(at, part, ids) for at, text in enumerate(texts) for part, ids in self._parts(before, text)]
        rows: Floats | None = None
        for number, vector in self.vectors([(part, ids) for _, part, ids in parts]):
            if rows is None:
                rows = np.zeros((len(texts), len(vector)), np.float32)
            at, _, ids = parts[number]
            rows[at] += vector * (len(ids) / (float(np.linalg.norm(vector)) or 1.0))
        assert rows is not None
        return rows

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
        try:
            # Flash attention doubles its speed; some models have no such code.
            self._llama = self._load(path, threads, flash_attention=True)
        except ValueError:
            self._llama = self._load(path, threads, flash_attention=False)
        if self._llama.pooling_type() == _RANK_POOLING:
            raise ValueError("it ranks texts and makes no vectors of them")
        self.dims = int(self._llama.n_embd())
        trained = self._llama._model.n_ctx_train()
        self.limit = min(MOST_TOKENS, trained) if trained > 0 else MOST_TOKENS

    @staticmethod
    def _load(path: Path, threads: int, flash_attention: bool) -> Any:  # noqa: ANN401 - the package has no types
        # Context, batch and micro-batch alike: other combinations abort the process with a longer text.
        return importlib.import_module("llama_cpp").Llama(
            str(path),
            embedding=True,
            n_ctx=MOST_TOKENS,
            n_batch=MOST_TOKENS,
            n_ubatch=MOST_TOKENS,
            n_threads=threads,
            n_threads_batch=threads,
            flash_attn=flash_attention,
            verbose=False,
        )

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of `text`."""
        ids: list[int] = self._llama.tokenize(text.encode("utf-8", "replace"))
        return ids

    def vectors(self, parts: Sequence[tuple[str, list[int]]]) -> Iterator[tuple[int, Floats]]:
        """Make the vector of each of `parts`, one after the other."""
        for number, (text, _) in enumerate(parts):
            vector = np.asarray(self._llama.embed(text, normalize=False, truncate=True), np.float32)
            # A model that does not pool: one vector a token.
            yield number, vector.mean(0) if vector.ndim == 2 else vector


class OnnxModel(Model):
    """An ONNX file in the form of sentence-transformers: files beside it say how token vectors become one, how long a
    text may be, and what is put before a question.
    """

    def __init__(self, path: Path, threads: int) -> None:
        here = path.parent
        folder = here if (here / "tokenizer.json").is_file() or here.name != "onnx" else here.parent
        self._pooling, self._prompts, self.limit = _pooling(folder), _prompts(folder), _limit(folder)
        tokenizer = _json(folder / "tokenizer.json")
        padding = tokenizer.get("padding")
        self._pad = padding.get("pad_id", 0) if isinstance(padding, dict) else 0
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
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # The classes of its faults are in a module that is not public.
            raise ValueError(_short(error)) from error
        self._inputs = {one.name: np.int32 if "int32" in one.type else np.int64 for one in self._session.get_inputs()}
        unknown = sorted(self._inputs.keys() - {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
        if unknown or "input_ids" not in self._inputs:
            raise ValueError(f"it asks for {', '.join(unknown)}" if unknown else "it takes no input_ids")
        outputs = [one.name for one in self._session.get_outputs()]
        names = (_WHOLE, "last_hidden_state", "token_embeddings", outputs[0])
        self._output = next(name for name in names if name in outputs)
        if self._output != _WHOLE and "sentence_transformers.models.Dense" in json.dumps(
            _json(folder / "modules.json")
        ):
            raise ValueError("a layer of it stands beside the ONNX file (Dense in modules.json)")
        self.dims = len(self.embed(["a"])[0])

    def prompt(self, kind: str) -> str:
        """Return what is put before a text of `kind`: query or document."""
        return self._prompts[kind]

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of `text`, with those that mark beginning and end."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def vectors(self, parts: Sequence[tuple[str, list[int]]]) -> Iterator[tuple[int, Floats]]:
        """Make the vectors of `parts` in runs of no more than _TOKENS_A_RUN; the longest of each stands first."""
        run: list[int] = []
        for number in [*sorted(range(len(parts)), key=lambda number: -len(parts[number][1])), -1]:
            if run and (number < 0 or (len(run) + 1) * len(parts[run[0]][1]) > _TOKENS_A_RUN):
                yield from zip(run, self._run([parts[at][1] for at in run]), strict=True)
                run = []
            run.append(number)

    def _run(self, rows: Sequence[Sequence[int]]) -> Floats:
        longest = max(1, *map(len, rows))
        ids: Batch = np.full((len(rows), longest), self._pad, np.int64)
        mask: Batch = np.zeros((len(rows), longest), np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(longest), ids.shape),
        }
        try:
            [out] = self._session.run(
                [self._output], {name: inputs[name].astype(kind) for name, kind in self._inputs.items()}
            )
        except Exception as error:  # The classes of its faults are in a module that is not public.
            raise ValueError(_short(error)) from error
        return self._pooled(np.asarray(out, np.float32), mask)

    def _pooled(self, out: Floats, mask: Batch) -> Floats:
        if out.ndim == 2 and len(out) == len(mask):
            return out
        if out.ndim != 3 or out.shape[:2] != mask.shape:
            raise ValueError(f"it answers with the shape {'x'.join(map(str, out.shape))}")
        if self._pooling == "cls":
            return np.asarray(out[:, 0], np.float32)
        if self._pooling == "last":
            return np.asarray(out[np.arange(len(mask)), np.maximum(mask.sum(1) - 1, 0)], np.float32)
        weights = mask[:, :, None].astype(np.float32)
        if self._pooling == "max":
            return np.asarray(np.where(weights > 0, out, -np.inf).max(1), np.float32)
        return np.asarray((out * weights).sum(1) / np.maximum(weights.sum(1), 1), np.float32)


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


def _pooling(folder: Path) -> str:
    """Return how token vectors become one: cls, last, max, or the mean where nothing is said. Raises ValueError."""
    config = _json(folder / "1_Pooling" / "config.json")
    modes = sorted(key for key, value in config.items() if key.startswith("pooling_mode_") and value is True)
    # Newer files name one mode instead of saying yes or no to each.
    if isinstance(mode := config.get("pooling_mode"), str):
        modes = [f"pooling_mode_{mode}"]
    pooling = [_POOLING[key] for key in (mode.removesuffix("_tokens") for mode in modes) if key in _POOLING]
    if config and (len(modes) != 1 or not pooling):
        raise ValueError(f"it pools by {' and '.join(modes) or 'nothing'}, which is not supported")
    return pooling[0] if pooling else "mean"


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


def _short(error: Exception) -> str:
    """Return what onnxruntime says, without its prefix and in one line."""
    words = " ".join(str(error).split()).rpartition("[ONNXRuntimeError] : ")[2]
    return words[:300].rstrip(". ") or type(error).__name__


def main() -> None:
    """Answer until standard input ends."""
    # What native code prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    kind, path, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    try:
        model = OnnxModel(path, threads) if kind == "onnx" else LlamaModel(path, threads)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _answer(answers, {"error": str(error) or type(error).__name__})
        return
    _answer(answers, {"dims": model.dims, "limit": model.limit})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        before = model.prompt(request["kind"]) if isinstance(model, OnnxModel) else ""
        try:
            vectors = model.embed(request["texts"], before)
        except (RuntimeError, ValueError) as error:
            _answer(answers, {"error": str(error) or type(error).__name__})
        else:
            _answer(answers, {"dims": model.dims}, vectors.astype("<f4").tobytes())


def _answer(answers: BinaryIO, header: dict[str, object], data: bytes = b"") -> None:
    answers.write(json.dumps(header).encode() + b"\n" + data)
    answers.flush()


if __name__ == "__main__":
    main()
