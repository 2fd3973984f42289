"""The figures of the README and of the manual are those of the recorded run of `tests/bench/recall.py`."""

import json
import re

from tests.bench.recall import RECORD, table
from tests.support.paths import ROOT

FIGURES = json.loads(RECORD.read_text("utf-8"))


def test_the_table_of_the_manual_is_that_of_the_recorded_run() -> None:
    page = (ROOT / "memory_tui/manual/profiles.md").read_text("utf-8")
    assert table(FIGURES) in page


def test_each_figure_of_the_readme_is_that_of_the_recorded_run() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    one = r"([.0-9]+)"
    numbers = rf"nDCG@10 of {one} \(English\) and {one} \(Chinese\), `openclaw-2026.3` {one} and {one}\."
    stated = re.search(numbers, text)
    assert stated, "the README compares the two profiles"
    names = [f"MemoryBank, {language}{by}" for by in ("", ", openclaw-2026.3") for language in ("English", "Chinese")]
    assert [f"{FIGURES[name]['ndcg@10']:.2f}" for name in names] == list(stated.groups())
