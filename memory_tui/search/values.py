"""A question may ask for a value of something: "router ip" asks for an address, and not for a line about `ip route`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from memory_tui import tokens
from memory_tui.search.formulas import Floats

_KINDS = (
    (r"ip|ips|ipv[46]", r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[\da-f]{1,4}(?:::?[\da-f]{1,4}){2,7}\b"),
    (r"mac", r"\b[\da-f]{2}(?:[:-][\da-f]{2}){5}\b"),
    (r"e-?mail|mail|correo|почта|メール|邮箱", r"[\w.+-]+@[\w-]+\.\w+"),
    (
        r"phone|telephone|telefon|telefonnummer|handynummer|teléfono|téléphone|телефон|電話番号|电话",
        r"\+?\d(?:[ ()/.-]?\d){5,}",
    ),
    (r"port", r":\d{2,5}\b|\b\d{2,5}\b"),
    (r"url|link|website", r"\w+://\S+|\bwww\.\S+"),
)
"""What a value is called, and what it looks like."""
_CALLED = [(re.compile(rf"\b(?:{called})\b", re.I), re.compile(form, re.I)) for called, form in _KINDS]


def value_asked(question: str) -> str:
    """Return the word of `question` that names the value it asks for; empty where none does."""
    words = next(filter(None, (called.search(question) for called, _ in _CALLED)), None)
    return words[0] if words else ""


def holds_value(texts: Sequence[str], value: str, words: Sequence[str]) -> Floats:
    """Return 1 for each of `texts` with a line that holds such a `value` and all other `words` of the question, else 0.

    The nearest heading above is of its line.
    """
    called, form = next(kind for kind in _CALLED if kind[0].fullmatch(value))
    stems = [frozenset(tokens.word_stems(word)) for word in words if not called.fullmatch(word)]
    return np.array([float(bool(stems) and _line_with(text, form, stems)) for text in texts])


def _line_with(text: str, form: re.Pattern[str], stems: Sequence[frozenset[str]]) -> bool:
    heading = ""
    for line in text.split("\n"):
        heading = line if line.startswith("#") else heading
        if form.search(line):
            held = {stem for stem, _, _ in tokens.stems(tokens.segmented(f"{heading} {line}"))}
            if all(each & held for each in stems):
                return True
    return False
