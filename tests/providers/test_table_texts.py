"""The texts that a table is trained with: named, checked, and the same whenever they are drawn."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from tests.tools import table_texts
from tests.tools.table_facts import facts, identifiers
from tests.tools.table_texts import Source


def test_a_source_with_other_bytes_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as wheel:
        wheel.writestr("data.json", "[]")
    digest = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    source = Source("some.whl", "1", "MIT", digest, ("data.json",))
    assert table_texts.repository(tmp_path, source) == {"data.json": b"[]"}
    with pytest.raises(SystemExit, match=r"some\.whl holds other bytes"):
        table_texts.repository(tmp_path, source._replace(sha256="0" * 64))


def test_a_question_to_somebody_is_asked_about_them() -> None:
    turns = [("Ben", "Nice. Do you like your new job?"), ("Anna", "Yes, the hours are good and so are the people.")]
    asked = {table_texts._asked(turns, 1, random.Random(seed)) for seed in range(20)}
    assert asked == {"Does Anna like Anna's new job?", "Do you like your new job?"}
    assert table_texts._asked(turns, 0, random.Random(1)) is None


@pytest.mark.parametrize("made", [facts, identifiers])
def test_what_is_made_from_a_seed_is_the_same_again(made) -> None:
    first, again = (list(made(random.Random("1"), 50)) for _ in range(2))
    assert first == again
    assert all(question.endswith("?") and passage.startswith("- ") for question, passage, _ in first)
    assert not any("{" in text for one in first for text in one[:2])
