"""A question may ask how things are now. Of lines that say the same the newest comes first then."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from memory_tui.search.formulas import Floats

ALIKE = 0.9
"""What the best line of a chunk holds of what the best of all holds, to say the same (now-images; .7 to .95 alike)."""
LOOKED_AT = 40
"""How many of the first candidates are compared (now-images)."""

# By language, without false friends: "actual" asks for now in Spanish alone, where an article stands before it.
_NOW = re.compile(
    r"\b(?:now|current(?:ly)?|latest|newest|still|at the moment|as of today|most recent|versions?"
    r"|aktuell\w*|derzeit\w*|momentan\w*|jetzt|zurzeit|neuest\w*|versionen"
    r"|ahora|actualmente|(?<=\b[le][al]\b)[^?]*\bactual(?:es)?|últim[oa]s?|versi[oó]n(?:es)?"
    r"|agora|atual(?:mente)?|atuais"
    r"|actuellement|maintenant|derni(?:er|ère)s?|teraz|obecnie"
    r"|сейчас|теперь|текущ\w+|последн\w+|верси\w+)\b"
    r"|现在|目前|当前|最新|如今|版本|今の|現在|今は|지금|현재|최신",
    re.IGNORECASE,
)
_LATELY = re.compile(r"\b(?:recently|lately|zuletzt|neulich|kürzlich|недавно|ostatnio)\b|最近", re.IGNORECASE)
_ASKS = re.compile(
    r"which|what|do|does|did|doing|have|has|been|moment|recent|installed|used|happen\w*|passiert|geschehen|было|произошло"
    r"|случилось|发生|生了|了什|什么",
    re.IGNORECASE,
)


def asks(word: str) -> bool:
    """Return whether `word` of a question only asks, so that lines are not compared by it."""
    return any(pattern.fullmatch(word) for pattern in (_NOW, _LATELY, _ASKS))


def words_for_now(question: str, searched: Iterable[str]) -> str:
    """Return the words of `question` that ask how things are now, or for what is new where nothing else is `searched`.

    Who asks of a trip "recently" means one trip, and not the last.
    """
    result = _NOW.search(question) or (_LATELY.search(question) if all(map(asks, searched)) else None)
    return result[0].strip() if result else ""


def newness(held: Floats, age_days: Floats) -> Floats:
    """Return how new each candidate is among those that say the same, the newest 1; 0 for others, and on one day.

    They say the same whose best line has `held` about as much as the best of all. What has no date counts as new.
    """
    alike = held >= ALIKE * held.max(initial=0.0)
    days, rank = np.unique(np.floor(-age_days[alike]), return_inverse=True)
    result = np.zeros(len(held))
    if np.count_nonzero(~np.isnan(days)) > 1:
        result[alike] = np.where(np.isnan(age_days[alike]), 1.0, (rank + 1) / np.count_nonzero(~np.isnan(days)))
    return result
