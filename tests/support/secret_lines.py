"""Labelled lines of notes: what in them is a secret stands in brackets, and random values are filled in from a seed."""

import random
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.support.secret_samples import ALNUM, DIGITS, HEX, SERVICES, word

FOLDER = Path(__file__).parents[1] / "secrets/lines"
_ALPHABETS = {"h": HEX, "b": ALNUM, "d": DIGITS}


def lines(name: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield each text of a set, with the spans that are secrets."""
    for number, row in enumerate((FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()[1:]):
        parts = re.split(r"\{([A-Za-z ]+?)(\d*)\}", row)
        chance = random.Random(f"{name} {number}")
        values = (_value(parts[at], parts[at + 1], chance) for at in range(1, len(parts), 3))
        filled = "".join(parts[::3][:1]) + "".join(a + b for a, b in zip(values, parts[3::3], strict=True))
        text, spans = "", []
        for part in re.split("(⟦[^⟧]*⟧)", filled.replace("⏎", "\n")):
            value = part.strip("⟦⟧")
            if value != part:
                spans.append((len(text), len(text) + len(value)))
            text += value
        yield text, spans


def _value(name: str, length: str, chance: random.Random) -> str:
    if name == "uuid":
        return str(uuid.UUID(int=chance.getrandbits(128), version=4))
    return word(chance, int(length), _ALPHABETS[name]) if length else SERVICES[name](chance)
