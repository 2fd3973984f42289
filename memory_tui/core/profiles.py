"""A scoring profile as data: values of the shared knobs, rules that no knob can set.

`openclaw-2026.3` and `openclaw-2026.2` are the documented behaviour of those releases; `recommended` is what measured
best on labelled chat logs at low cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from memory_tui.core.errors import SettingError
from memory_tui.core.settings import Scalar, Settings, Value

OPENCLAW = "openclaw-2026.3"
OWN = "recommended"


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of rules; each field is a place where the releases differ."""

    name: str
    title: str
    join: Literal["AND", "OR"]
    """How the words of a query are combined in full-text search."""
    text_score: Literal["clamped", "saturated", "magnitude"]
    """bm25 to text score: 1/(1+max(0, rank)); r/(1+r) with r = -rank; or r divided by the query's best r."""
    vector_score: Literal["cosine", "share"]
    """The cosine itself, or the cosine divided by the query's best cosine."""
    age: Literal["multiply", "add"]
    """Whether age multiplies the score before minScore, or is a small addition that breaks ties."""
    relaxed_floor: bool
    """Whether keyword hits may pass min(minScore, textWeight) when nothing passes minScore."""
    fewest_candidates: int
    """Candidates a side proposes at least, whatever maxResults x candidateMultiplier says."""
    missing_side: Literal["zero", "computed"]
    """Score of the side that did not propose a candidate: 0, or what it really is."""
    snippet: Literal["head", "window"]
    """The first 700 characters of a chunk, or 700 around the words that matched."""
    faults: bool = False
    """Whether the release has faults that are told and not copied (`search.faults`)."""
    values: Mapping[str, Scalar] = field(default_factory=dict)
    ignores: Mapping[str, str] = field(default_factory=dict)
    """Knobs without effect under this profile, each with the reason a person is told."""


_NO_ADDITIONS = {
    "recency.weight": "OpenClaw multiplies by age instead of adding to the score",
    "dateBoost": "OpenClaw does not read dates in a query",
}

OPENCLAW_2026_3 = Profile(
    name="openclaw-2026.3",
    title="OpenClaw 2026.3.13",
    join="AND",
    text_score="saturated",
    vector_score="cosine",
    age="multiply",
    relaxed_floor=True,
    fewest_candidates=1,
    missing_side="zero",
    snippet="head",
    faults=True,
    ignores=_NO_ADDITIONS,
)

OPENCLAW_2026_2 = Profile(
    name="openclaw-2026.2",
    title="OpenClaw 2026.2.26",
    join="AND",
    text_score="clamped",
    vector_score="cosine",
    age="multiply",
    relaxed_floor=False,
    fewest_candidates=1,
    missing_side="zero",
    snippet="head",
    faults=True,
    ignores=_NO_ADDITIONS,
)

RECOMMENDED = Profile(
    name="recommended",
    title="recommended",
    join="OR",
    text_score="magnitude",
    vector_score="share",
    age="add",
    relaxed_floor=False,
    fewest_candidates=200,
    missing_side="computed",
    snippet="window",
    values={
        "query.hybrid.vectorWeight": 0.4,
        "query.hybrid.textWeight": 0.6,
        "query.minScore": 0.0,
        "query.hybrid.temporalDecay.enabled": True,
    },
    ignores={"query.hybrid.candidateMultiplier": "recommended always looks at 200 candidates a side"},
)

PROFILES: Mapping[str, Profile] = {p.name: p for p in (RECOMMENDED, OPENCLAW_2026_3, OPENCLAW_2026_2)}


def get(name: str) -> Profile:
    """The profile called `name`. Raises SettingError."""
    try:
        return PROFILES[name]
    except KeyError:
        raise SettingError(f"There is no profile {name!r}.", f"Choose one of {', '.join(PROFILES)}.") from None


def meant(name: str, kind: str) -> str:
    """What `name` comes to beside a configuration of `kind`: `auto` is OpenClaw's profile where that is OpenClaw's."""
    if name != "auto":
        return name
    return OPENCLAW if kind == "openclaw" else OWN


def compose(name: str, configured: Mapping[str, Value], chosen: Mapping[str, Value]) -> Settings:
    """Settings under profile `name`: defaults, then `configured`, then the profile's own values, then `chosen`.

    `configured` comes from a configuration file, `chosen` from the command line or the screen. Raises SettingError.
    """
    profile = get(name)
    own = {key: Value(value, f"profile {name}") for key, value in profile.values.items()}
    asked = chosen.get("profile") or configured.get("profile")
    named = {"profile": Value(name, asked.origin if asked else "default")}
    layers = {**Settings.defaults().values, **configured, **own, **chosen, **named}
    return Settings(MappingProxyType(layers))
