"""A pattern that is compiled later does what a compiled one does, and is compiled once."""

from __future__ import annotations

import re

import pytest

from memory_tui import patterns
from memory_tui.patterns import compiled_later


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.IGNORECASE | re.ASCII])
def test_it_answers_as_a_compiled_pattern(flags: int) -> None:
    later, compiled = compiled_later(r"(?P<word>k+)\w", flags), re.compile(r"(?P<word>k+)\w", flags)
    text = "kka Kä \u212a9 k"
    assert [match.span() for match in later.finditer(text)] == [match.span() for match in compiled.finditer(text)]
    assert later.findall(text, 2) == compiled.findall(text, 2)
    assert later.sub(r"<\g<word>>", text) == compiled.sub(r"<\g<word>>", text)
    assert later.split(text) == compiled.split(text)
    assert bool(later.fullmatch("ka")) is bool(later.match("kaa")) is bool(later.search("-ka")) is True
    assert (later.pattern, later.flags, later.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_it_is_compiled_at_the_first_use_and_each_method_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(patterns.re, "compile", lambda pattern, flags: made.append(pattern) or re.Pattern)
    later = compiled_later("a")
    assert made == []
    assert later.search is later.search is re.Pattern.search
    assert made == ["a"]


def test_a_pattern_that_is_wrong_fails_at_its_use() -> None:
    with pytest.raises(re.error):
        compiled_later("(").search("")
