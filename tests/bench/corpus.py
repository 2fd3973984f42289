"""A workspace of daily notes for measuring: deterministic, about 4 KB a note, words drawn with natural frequencies."""

import datetime as dt
import itertools
import random
from pathlib import Path

_SOUNDS = "ka re mo ti su na lo vi ra de po shi nu ga el or an is"
_FREQUENT = "the of and to a in that is was it for on with as he be at by "
_FREQUENT += "had not are but from or have an they which you one"
_SYLLABLES = tuple(_SOUNDS.split())
LAST_DAY = dt.date(2026, 11, 19)


def vocabulary(size: int = 8000) -> list[str]:
    """`size` distinct words, the most frequent first."""
    rng = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))] = None
    return list(words)


_FUNCTION = _FREQUENT.split()
_ENDINGS = ("", "", "", "s", "ed", "ing", "ly")


def _prose(size: int = 60_000) -> list[str]:
    """A vocabulary as prose has it: function words first, then words with endings, most of them rare."""
    return [*_FUNCTION, *(f"{word}{_ENDINGS[at % len(_ENDINGS)]}" for at, word in enumerate(vocabulary(size)))]


def write(folder: Path, files: int, size: int = 4000, kind: str = "frequent", first: int = 0) -> Path:
    """`files` daily notes of about `size` characters below `folder`/memory, and a MEMORY.md.

    Of the `kind` "frequent" 8,000 words share the text, so that most questions match most chunks; "prose" has
    sentences of function words and 60,000 others, most of them rare. They are of the days before the `first` ones.
    """
    words = vocabulary() if kind == "frequent" else _prose()
    # Added up once: `choices` would do so for each line.
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- The router is an Omada\n")
    for number in range(first, first + files):
        rng = random.Random(number)
        day = LAST_DAY - dt.timedelta(days=number)
        lines = [f"# {day}", ""]
        length = 0
        while length < size:
            drawn = rng.choices(words, cum_weights=weights, k=rng.randint(8, 16))
            lines.append("- " + " ".join(drawn) if kind == "frequent" else " ".join(drawn).capitalize() + ".")
            length += len(lines[-1]) + 1
        (folder / "memory" / f"{day}.md").write_text("\n".join(lines) + "\n")
    return folder


def questions(count: int, kind: str = "frequent") -> list[str]:
    words, rng = vocabulary() if kind == "frequent" else _prose(), random.Random(2)
    return [" ".join([*rng.sample(words[:200], 2), *rng.sample(words, rng.randint(2, 5))]) for _ in range(count)]
