"""An answer is of one state of the index, whoever makes the index anew while it is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.providers.builtin import Scripted
from tests.support.paths import TESTS

HARNESS = TESTS / "harness" / "rebuild.py"


def asked(folder: Path, answers: int, rebuilds: int, seed: int) -> str:
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(folder), str(answers), str(rebuilds), str(seed)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_answers_beside_rebuilds_have_the_text_of_their_lines(tmp_path: Path) -> None:
    assert "beside 3 rebuilds, 0 wrong" in asked(tmp_path, 80, 3, 3)


@pytest.mark.soak
def test_ten_thousand_answers_beside_eighty_rebuilds_have_the_text_of_their_lines(tmp_path: Path) -> None:
    assert "beside 80 rebuilds, 0 wrong" in asked(tmp_path, 10_000, 80, 5)


def engine(tmp_path: Path, tokens: int) -> Engine:
    changes = (("chunking.tokens", str(tokens)), ("chunking.overlap", "0"), ("sync.onSearch", "off"))
    return Engine.open(
        Options(
            workspace=str(tmp_path / "notes"), index=str(tmp_path / "i.sqlite"), provider="scripted", changes=changes
        )
    )


def rebuilt(tmp_path: Path, tokens: int) -> None:
    with engine(tmp_path, tokens) as other:
        assert other.index.sync().rebuilt


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes" / "memory"
    folder.mkdir(parents=True)
    for name in "abcdef":
        (folder / f"{name}.md").write_text("".join(f"{name} line {at} of the garden\n" for at in range(1, 80)))
    return tmp_path


def test_a_question_that_is_embedded_while_the_index_is_made_anew(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine(notes, 60) as first:
        first.index.sync()
    with engine(notes, 60) as reader:
        real = Scripted.embed

        def slow(provider: Scripted, texts: Any, kind: Any) -> Any:
            if kind == "query":
                rebuilt(notes, 200)
            return real(provider, texts, kind)

        monkeypatch.setattr(Scripted, "embed", slow)
        evidence = reader.search.gather("line 40 of the garden")
        assert evidence.texts
        for row in evidence.pool.tolist():
            ref = evidence.refs[row]
            if ref.rowid in evidence.texts:
                lines = (notes / "notes" / ref.path).read_text().split("\n")[ref.start_line - 1 : ref.end_line]
                assert evidence.texts[ref.rowid].strip("\n") == "\n".join(lines).strip("\n")
