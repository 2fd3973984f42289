"""The process that holds an ONNX model, so that a crash of native code ends nothing else.

Run as a script with the path of an ONNX file and a number of threads; it knows nothing else of memory-tui, reads the
files of the model alone, and asks nobody. It speaks as `llama_worker` does. The files beside the model, in the form of
sentence-transformers, say how token vectors become one, how long a text may be, and what is put before a question.
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
_ENDS = 2
"""Tokens that mark beginning and end: a limit of no more than these says nothing."""
_TOKENS_A_RUN = 512
"""Padding counted; larger runs are slower on a processor, and take more memory."""
_MOST_BYTES = 256 << 20
"""A tokenizer of a hundred languages has 17 MB."""
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
_BEFORE_FIRST = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}
"""Positions that some models count and no token has."""
Floats = npt.NDArray[np.float32]
Batch = npt.NDArray[np.int64]


def beside(model: Path) -> Path:
    """The folder of tokenizer and settings: that of the model, or the one above where the model is in `onnx`."""
    here = model.parent
    return here if (here / "tokenizer.json").is_file() or here.name != "onnx" else here.parent


def read_json(path: Path) -> object:
    """What a JSON file holds, None where there is none. Raises ValueError."""
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{path.name} is larger than {_MOST_BYTES >> 20} MiB")
        return json.loads(path.read_text("utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error


def settings_in(path: Path) -> Mapping[str, Any]:
    """The object that a JSON file holds, empty where there is none. Raises ValueError."""
    found = read_json(path)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no object")
    return found or {}


def pooling_of(folder: Path) -> str:
    """How token vectors become one: cls, mean, max or last; the mean where nothing says so. Raises ValueError."""
    found = settings_in(folder / "1_Pooling" / "config.json")
    if not found:
        return "mean"
    asked = sorted(key for key, value in found.items() if key.startswith("pooling_mode_") and value is True)
    # Newer files name one mode instead of saying yes or no to each.
    if isinstance(named := found.get("pooling_mode"), str):
        asked = [f"pooling_mode_{named}"]
    known = [_POOLING[key] for key in (one.removesuffix("_tokens") for one in asked) if key in _POOLING]
    if len(asked) != 1 or not known:
        raise ValueError(f"it pools by {' and '.join(asked) or 'nothing'}, which is not supported")
    return known[0]


def limit_of(folder: Path) -> int:
    """Tokens that the model takes, with those that mark beginning and end. Raises ValueError."""
    config = settings_in(folder / "config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int):
        positions -= _BEFORE_FIRST.get(str(config.get("model_type")), 0)
    told = (
        settings_in(folder / "sentence_bert_config.json").get("max_seq_length"),
        settings_in(folder / "tokenizer_config.json").get("model_max_length"),
        positions,
    )
    return int(
        min([MOST_TOKENS, *(one for one in told if isinstance(one, int) and not isinstance(one, bool) and one > _ENDS)])
    )


def prompts_of(folder: Path) -> dict[str, str]:
    """What is put before a text, by its kind: query, document. Raises ValueError."""
    found = settings_in(folder / "config_sentence_transformers.json").get("prompts")
    named = found if isinstance(found, dict) else {}
    documents = next((named[key] for key in ("document", "passage", "search_document") if named.get(key)), "")
    questions = next((named[key] for key in ("query", "search_query") if named.get(key)), "")
    return {"query": str(questions), "document": str(documents)}


class Tokens:
    """The tokenizer of a model. Raises ValueError when it is none."""

    def __init__(self, folder: Path) -> None:
        found = read_json(folder / "tokenizer.json")
        if not isinstance(found, dict):
            raise ValueError("tokenizer.json is missing" if found is None else "tokenizer.json holds no object")
        padding = found.get("padding")
        self.pad = padding.get("pad_id", 0) if isinstance(padding, dict) else 0
        try:
            self._tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(json.dumps(found))
        except Exception as error:  # The library raises plain Exceptions, and has no class of its own.
            raise ValueError(f"tokenizer.json is damaged: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def ids(self, text: str) -> list[int]:
        """Token ids of `text`, with those that mark beginning and end."""
        found: list[int] = self._tokenizer.encode(text).ids
        return found


class OnnxModel:
    """A loaded ONNX file. Raises ValueError when it cannot be loaded or makes no embeddings."""

    def __init__(self, path: Path, threads: int) -> None:
        folder = beside(path)
        self._tokens, self.limit = Tokens(folder), limit_of(folder)
        self._pooling, self._prompts = pooling_of(folder), prompts_of(folder)
        runtime = importlib.import_module("onnxruntime")
        # Its Windows build reports to its maker unless it is told not to.
        runtime.disable_telemetry_events()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # Threads that wait give their core back instead of spinning.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
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
        if self._output != _WHOLE and _dense(folder):
            raise ValueError("a layer of it stands beside the ONNX file (Dense in modules.json)")
        self.dims = len(self.embed(["a"], "document")[0])

    def embed(self, texts: Sequence[str], kind: str) -> Floats:
        """The vectors of `texts`; of a text over the limit, the mean of its parts by their number of tokens."""
        before = self._prompts.get(kind, "")
        parts = [(at, ids) for at, text in enumerate(texts) for ids in self._parts(before, text)]
        # The longest first: a run is as long as its longest text.
        order = sorted(range(len(parts)), key=lambda one: -len(parts[one][1]))
        out: Floats | None = None
        for run in _runs(order, [len(ids) for _, ids in parts]):
            vectors = self._run([parts[one][1] for one in run])
            if out is None:
                out = np.zeros((len(texts), vectors.shape[1]), np.float32)
            for one, vector in zip(run, vectors, strict=True):
                at, ids = parts[one]
                out[at] += vector * (len(ids) / (float(np.linalg.norm(vector)) or 1.0))
        assert out is not None
        return out

    def _parts(self, before: str, text: str) -> Iterator[list[int]]:
        """Token ids of `text`, in pieces that the model takes whole, cut at white space where there is any."""
        ids = self._tokens.ids(before + text)
        if len(ids) <= self.limit:
            yield ids
        elif len(text) < 2:
            yield ids[: self.limit]
        else:
            cut = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
            yield from self._parts(before, text[:cut])
            yield from self._parts(before, text[cut:])

    def _run(self, rows: Sequence[Sequence[int]]) -> Floats:
        longest = max(1, *map(len, rows))
        ids: Batch = np.full((len(rows), longest), self._tokens.pad, np.int64)
        mask: Batch = np.zeros((len(rows), longest), np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(longest), ids.shape),
        }
        try:
            [found] = self._session.run(
                [self._output], {name: given[name].astype(kind) for name, kind in self._inputs.items()}
            )
        except Exception as error:  # The classes of its faults are in a module that is not public.
            raise ValueError(_short(error)) from error
        return self._pooled(np.asarray(found, np.float32), mask)

    def _pooled(self, found: Floats, mask: Batch) -> Floats:
        if found.ndim == 2 and len(found) == len(mask):
            return found
        if found.ndim != 3 or found.shape[:2] != mask.shape:
            raise ValueError(f"it answers with the shape {'x'.join(map(str, found.shape))}")
        if self._pooling == "cls":
            return np.asarray(found[:, 0], np.float32)
        if self._pooling == "last":
            return np.asarray(found[np.arange(len(mask)), np.maximum(mask.sum(1) - 1, 0)], np.float32)
        weights = mask[:, :, None].astype(np.float32)
        if self._pooling == "max":
            return np.asarray(np.where(weights > 0, found, -np.inf).max(1), np.float32)
        return np.asarray((found * weights).sum(1) / np.maximum(weights.sum(1), 1), np.float32)


def _dense(folder: Path) -> bool:
    found = read_json(folder / "modules.json")
    return isinstance(found, list) and any(
        str(one.get("type", "")).endswith(".Dense") for one in found if isinstance(one, dict)
    )


def _runs(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """`order` in runs of no more than _TOKENS_A_RUN, padding counted; the longest of each stands first."""
    run: list[int] = []
    for one in order:
        if run and (len(run) + 1) * lengths[run[0]] > _TOKENS_A_RUN:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _short(error: Exception) -> str:
    """What onnxruntime says, without its prefix and in one line."""
    return (
        " ".join(str(error).split()).rpartition("[ONNXRuntimeError] : ")[2][:300].rstrip(". ") or type(error).__name__
    )


def main() -> None:
    """Answer until standard input ends."""
    # What native code prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        model = OnnxModel(Path(sys.argv[1]), int(sys.argv[2]))
    except (ImportError, OSError, ValueError) as error:
        _say(answers, {"error": str(error) or type(error).__name__})
        return
    _say(answers, {"dims": model.dims, "limit": model.limit})
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        try:
            vectors = model.embed(asked["texts"], asked["kind"]).astype("<f4")
        except ValueError as error:
            _say(answers, {"error": str(error)})
            continue
        _say(answers, {"dims": model.dims}, vectors.tobytes())


def _say(answers: BinaryIO, header: dict[str, object], data: bytes = b"") -> None:
    answers.write(json.dumps(header).encode() + b"\n" + data)
    answers.flush()


if __name__ == "__main__":
    main()
