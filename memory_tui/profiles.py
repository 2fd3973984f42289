"""A scoring profile is data. It has values of the shared knobs, and rules that no knob can set.

`openclaw-2026.9`, `openclaw-2026.3` and `openclaw-2026.2` are the behaviour of those releases; `recommended` is what
measured best on labelled chat logs at low cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.errors import SettingError
from memory_tui.settings import Scalar, Settings, Value

OPENCLAW = "openclaw-2026.3"
NEWEST = "openclaw-2026.9"
OWN = "recommended"


Term = Literal["decay", "importance", "project"]


class Profile(Struct, frozen=True):
    """A named set of rules; each field is a place where the releases differ."""

    name: str
    title: str
    text_score: Literal["clamped", "saturated", "magnitude", "boosted"]
    """bm25 to text score: 1/(1+max(0, rank)); r/(1+r) with r = -rank; r divided by the query's best r; or r/(1+r) and a
    boost, of the question and of its keywords one by one, and of paths (`search.lexical_2026_9`)."""
    join: Literal["AND", "OR"] = "AND"
    """How the words of a query are combined in full-text search."""
    vector_score: Literal["cosine", "share"] = "cosine"
    """The cosine itself, or the cosine divided by the query's best cosine."""
    age: Literal["multiply", "add"] = "multiply"
    """Whether age multiplies the score before minScore, or is a small addition that breaks ties."""
    relaxed_floor: bool = False
    """Whether keyword hits may pass min(minScore, textWeight) when nothing passes minScore."""
    fewest_candidates: int = 1
    """Candidates a side proposes at least, whatever maxResults x candidateMultiplier says."""
    missing_side: Literal["zero", "computed"] = "zero"
    """Score of the side that did not propose a candidate: 0, or what it really is."""
    terms: tuple[Term, ...] = ("decay",)
    """What multiplies the sum of both sides, in this order."""
    rescues: bool = False
    """Whether keyword hits below minScore follow those over it, where they have no vector score."""
    exact_paths: bool = False
    """Whether chunks of a note that the question names come first, in groups of their own."""
    chunking: Literal["2026.3", "2026.9", "headings"] = "2026.3"
    """The release by whose rules notes are cut, or that chunks end at headings."""
    snippet: Literal["head", "window"] = "head"
    """The first 700 characters of a chunk, or 700 around the words that matched."""
    builtin_floor: float = 0.0
    """What a cosine of 0 scores by the built-in table, which OpenClaw does not have: minScore is set for models whose
    cosines are higher, and where all words must match most hits have a cosine alone."""
    second_stage: bool = False
    """Whether the first candidates are looked into (`search.second_stage`)."""
    one_place: bool = False
    """Whether a passage that stands in several places takes one place in an answer."""
    faults: bool = False
    """Whether the release has faults that are told and not copied (`search.faults`)."""
    values: Mapping[str, Scalar] = field(default_factory=dict)
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    """Knobs that the release took away, each with the value that it now always has; they are in `ignores` too."""
    ignores: Mapping[str, str] = field(default_factory=dict)
    """Knobs without effect under this profile, each with the reason a person is told."""

    def floor_of(self, provider: str) -> float:
        """Return what a cosine of 0 scores by the vectors of `provider`."""
        return self.builtin_floor if provider == "builtin" else 0.0


_NO_ADDITIONS = {
    "recency.weight": "OpenClaw multiplies by age instead of adding to the score",
    "dateBoost": "OpenClaw does not read dates in a query",
    "secondStage.weight": "OpenClaw does not look into its candidates",
    "secondStage.neighbour": "OpenClaw does not look into its candidates",
    "query.maxCharacters": "OpenClaw gives the first 700 characters of each hit",
}

OPENCLAW_2026_3 = Profile(
    name="openclaw-2026.3",
    title="OpenClaw 2026.3.13",
    text_score="saturated",
    relaxed_floor=True,
    builtin_floor=0.35,
    faults=True,
    ignores=_NO_ADDITIONS,
)

OPENCLAW_2026_2 = replace(
    OPENCLAW_2026_3, name="openclaw-2026.2", title="OpenClaw 2026.2.26", text_score="clamped", relaxed_floor=False
)

_FIXED: Mapping[str, Scalar] = {
    "query.hybrid.enabled": True,
    "query.hybrid.vectorWeight": 0.7,
    "query.hybrid.textWeight": 0.3,
    "query.hybrid.candidateMultiplier": 4,
    "query.hybrid.mmr.enabled": True,
    "query.hybrid.mmr.lambda": 0.7,
    "query.hybrid.temporalDecay.enabled": True,
    "query.hybrid.temporalDecay.halfLifeDays": 30,
    "chunking.tokens": 400,
    "chunking.overlap": 80,
}
_NO_SETTING = "2026.9 has no setting for this; recommended has"

OPENCLAW_2026_9 = Profile(
    name=NEWEST,
    title="OpenClaw 2026.9.6",
    text_score="boosted",
    fewest_candidates=200,
    terms=("decay", "importance", "project"),
    rescues=True,
    exact_paths=True,
    chunking="2026.9",
    fixed=_FIXED,
    ignores={**_NO_ADDITIONS, **dict.fromkeys(_FIXED, _NO_SETTING)},
)

RECOMMENDED = Profile(
    name="recommended",
    title="recommended",
    join="OR",
    text_score="magnitude",
    vector_score="share",
    age="add",
    chunking="headings",
    fewest_candidates=60,
    missing_side="computed",
    snippet="window",
    second_stage=True,
    one_place=True,
    values={
        "query.hybrid.vectorWeight": 0.4,
        "query.hybrid.textWeight": 0.6,
        "query.minScore": 0.0,
        "query.hybrid.temporalDecay.enabled": True,
    },
    ignores={"query.hybrid.candidateMultiplier": "recommended always looks at 60 candidates a side"},
)

PROFILES: Mapping[str, Profile] = {p.name: p for p in (RECOMMENDED, OPENCLAW_2026_9, OPENCLAW_2026_3, OPENCLAW_2026_2)}


def get(name: str) -> Profile:
    """Return the profile called `name`. Raises SettingError."""
    if name not in PROFILES:
        raise SettingError(f"There is no profile {name!r}.", f"Choose one of {', '.join(PROFILES)}.")
    return PROFILES[name]


def compose(name: str, configured: Mapping[str, Value], chosen: Mapping[str, Value]) -> Settings:
    """Return the settings of profile `name`: defaults, then `configured`, the profile's own values, then `chosen`.

    `configured` comes from a configuration file, `chosen` from the command line or the screen. Raises SettingError.
    """
    profile = get(name)
    usual = {key: Value(value, f"profile {name}") for key, value in profile.values.items()}
    choice = chosen.get("profile") or configured.get("profile")
    named = {"profile": Value(name, choice.origin if choice else "default")}
    fixed = {key: Value(value, f"profile {name}") for key, value in profile.fixed.items()}
    layers = {**Settings.defaults().values, **configured, **usual, **chosen, **fixed, **named}
    return Settings(MappingProxyType(layers))
