"""Tiny ONNX models, written byte by byte: a row of a table for each token, and what an export may have wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "walrus", "cake", "router", "query")
ROWS = np.array([[9, 9, 9], [0, 0, 1], [1, 2, 0], [2, 1, 0], [4, 0, 0], [0, 4, 0], [3, 0, 5], [0, 0, 7]], np.float32)
"""What the model makes of each of WORDS; that of the padding would be noticed."""
_FLOAT, _INT64 = 1, 7


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _value(name: str, kind: int, axes: Sequence[str]) -> bytes:
    shape = b"".join(_field(1, _field(2, axis)) for axis in axes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def model_bytes(
    inputs: Sequence[str] = ("input_ids", "attention_mask"), output: str = "last_hidden_state", weights: str = ""
) -> bytes:
    """An ONNX file with these `inputs`, of which it reads the first; `weights` names a file that holds its table."""
    node = _field(1, "table") + _field(1, inputs[0]) + _field(2, output) + _field(4, "Gather")
    data = _field(9, ROWS.tobytes())
    if weights:
        data = _field(13, _field(1, "location") + _field(2, weights)) + _field(14, 1)
    table = b"".join(_field(1, size) for size in ROWS.shape) + _field(2, _FLOAT) + _field(8, "table") + data
    graph = _field(1, node) + _field(2, "tiny") + _field(5, table)
    graph += b"".join(_field(11, _value(name, _INT64, ("rows", "tokens"))) for name in inputs)
    graph += _field(12, _value(output, _FLOAT, ("rows", "tokens", "dims")))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


def tokenizer() -> dict[str, Any]:
    """A tokenizer of whole words that marks beginning and end, in the form of the `tokenizers` package."""
    ids = {word: at for at, word in enumerate(WORDS)}
    special = {word: {"id": word, "ids": [ids[word]], "tokens": [word]} for word in ("[CLS]", "[SEP]")}
    one = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {
        "version": "1.0",
        "truncation": {"max_length": 3, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
        "padding": {
            "strategy": {"Fixed": 40},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [*one, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [*one, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": special,
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": "[UNK]"},
    }


def write(folder: Path, model: bytes | None = None, **settings: object) -> Path:
    """A model in `folder`; `settings` are the files beside it by name without `.json`, `pooling` in its own folder."""
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model_bytes() if model is None else model)
    files = {"tokenizer": tokenizer(), **settings}
    for name, value in files.items():
        path = folder / ("1_Pooling/config.json" if name == "pooling" else f"{name}.json")
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder
