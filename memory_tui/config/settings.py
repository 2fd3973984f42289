"""The settings with defaults, ranges and help, a row each (`Knob`); the profiles that choose their values; the other
keys that a configuration file may hold (`Key`).

A profile is data: values of the knobs, and rules that no knob can set. `openclaw-2026.9`, `openclaw-2026.3` and
`openclaw-2026.2` are the behaviour of those releases; `recommended` is what measured best on labelled chat logs at low
cost.

Keys are the documented ones of 2026.3.13 and of 2026.9.6, those of knobs below `agents.defaults.memorySearch`, plus
those that only memory-tui has. What memory-tui can change while it runs is a knob: command line, tune strip, help and
manual read this one table.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.errors import SettingError
from memory_tui.providers import MOST_DIMS, registry

Scalar = bool | int | float | str


class Knob(Struct, frozen=True):
    """One setting: its key, a short label, default, and for a number the inclusive range `low` to `high`.

    A knob that `tunes` ranks a query again and retrieves nothing, by a `step` or a `fine` one. Its slider ends at
    `high`; a typed value may go to `most`, where that is more. Without the knob that it `needs` it has no effect; it
    and `pair` add up to 1.
    """

    key: str
    label: str
    default: Scalar
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    fine: float = 0.0
    most: float = 0.0
    unit: str = ""
    choices: tuple[str, ...] = ()
    tunes: bool = False
    needs: str = ""
    pair: str = ""

    @property
    def help(self) -> str:
        """Return what it is for."""
        return HELP[self.key]

    @property
    def top(self) -> float:
        """Return the largest value that is accepted."""
        return max(self.high, self.most)


# Low, high, step and fine step of a knob; then the most that may be typed.
_SHARE = 0.0, 1.0, 0.05, 0.01
_HALF_LIFE, _DAYS = "query.hybrid.temporalDecay.halfLifeDays", (1, 3650, 5, 1, 1_000_000)
_VECTOR, _TEXT = "query.hybrid.vectorWeight", "query.hybrid.textWeight"
_DECAYS = "query.hybrid.temporalDecay.enabled"
_BOTH = "query.hybrid.enabled"
_PROFILES = ("auto", "recommended", "openclaw-2026.9", "openclaw-2026.3", "openclaw-2026.2")

OPENCLAW_KNOBS: tuple[Knob, ...] = (
    Knob(_VECTOR, "vector", 0.7, *_SHARE, tunes=True, needs=_BOTH, pair=_TEXT),
    Knob(_TEXT, "text", 0.3, *_SHARE, tunes=True, needs=_BOTH, pair=_VECTOR),
    Knob("query.minScore", "minScore", 0.35, *_SHARE, tunes=True),
    Knob("query.hybrid.temporalDecay.enabled", "decay", False, tunes=True),
    Knob(_HALF_LIFE, "half-life", 30, *_DAYS, unit="d", tunes=True, needs=_DECAYS),
    Knob("query.maxResults", "results", 6, 1, 50, 1, 1, 1000, tunes=True),
    Knob("query.hybrid.candidateMultiplier", "candidates", 4, 1, 20, 1, 1, unit="x", tunes=True),
    Knob("query.hybrid.mmr.enabled", "mmr", False, tunes=True),
    Knob("query.hybrid.mmr.lambda", "mmr lambda", 0.7, *_SHARE, tunes=True, needs="query.hybrid.mmr.enabled"),
    Knob("query.hybrid.enabled", "hybrid", True, tunes=True),
    Knob("chunking.tokens", "chunk tokens", 400, 1, 1_000_000),
    Knob("chunking.overlap", "overlap", 80, 0, 999_999),
    Knob("sync.watch", "watch", True),
    Knob("sync.watchDebounceMs", "debounce", 1500, 0, 3_600_000, unit="ms"),
    Knob("sync.onSearch", "sync on search", True),
    Knob("sync.onSessionStart", "sync at start", True),
    Knob("sync.intervalMinutes", "interval", 0, 0, 1_000_000, unit="min"),
    Knob("sync.sessions.deltaBytes", "session bytes", 100_000, 0, 10_000_000, unit="B"),
    Knob("sync.sessions.deltaMessages", "session lines", 50, 0, 10_000),
    Knob("store.fts.tokenizer", "tokenizer", "unicode61", choices=("unicode61", "trigram")),
    Knob("cache.enabled", "cache", True),
)
OWN_KNOBS: tuple[Knob, ...] = (
    Knob("profile", "profile", "auto", choices=_PROFILES),
    Knob("recency.weight", "recency", 0.02, 0, 0.5, 0.01, 0.005, tunes=True, needs=_DECAYS),
    Knob("dateBoost", "date boost", 1.0, *_SHARE, tunes=True),
    Knob("secondStage.weight", "2nd stage", 0.7, *_SHARE, tunes=True),
    Knob("secondStage.neighbour", "neighbour", 0.1, 0, 0.5, 0.05, 0.01, tunes=True, needs="secondStage.weight"),
    Knob("query.maxCharacters", "characters", 3600, 0, 1_000_000),
    Knob("questionTime.enabled", "question time", True),
    Knob("spelling.enabled", "spelling", True),
    Knob("answer.doubtBelow", "doubt below", 0.36, 0, 1),
    Knob("answer.nothingBelow", "nothing below", 0.1, 0, 1),
    Knob("exclude", "exclude", ""),
    Knob("sessions.archives", "archives", False),
    Knob("local.threads", "local threads", 0, 0, 256),
    Knob("remote.concurrency", "requests at once", 4, 1, 64),
    Knob("remote.withholdSecrets", "withhold secrets", True),
    Knob("history.enabled", "history", True),
    Knob("history.days", "history days", 90, 1, 36_500, unit="d"),
    Knob("history.megabytes", "history size", 256, 1, 100_000, unit="MB"),
    Knob("recall.log", "recall log", False),
    Knob("recall.maxInjectedChars", "injected", 0, 0, 10_000_000),
)
"""Knobs that OpenClaw does not have."""
HELP: Mapping[str, str] = {
    "query.hybrid.vectorWeight": "share of meaning (cosine) in the score; words have the rest",
    "query.hybrid.textWeight": "share of words (bm25) in the score",
    "query.minScore": "hits that score less are not recalled",
    "query.hybrid.temporalDecay.enabled": "let the score of dated notes fade with age",
    "query.hybrid.temporalDecay.halfLifeDays": "days in which the freshness of a dated note halves",
    "query.maxResults": "how many hits the agent gets",
    "query.hybrid.candidateMultiplier": "each side proposes results times this many candidates, 200 at most",
    "query.hybrid.mmr.enabled": "prefer hits that differ from those already chosen",
    "query.hybrid.mmr.lambda": "1 is relevance alone, 0 is variety alone",
    "query.hybrid.enabled": "add keyword search to vector search",
    "chunking.tokens": "size of a chunk; a token counts as four characters",
    "chunking.overlap": "how much of a chunk is repeated in the next",
    "sync.watch": "index files as soon as they are saved",
    "sync.watchDebounceMs": "quiet time after a save before it is indexed",
    "sync.onSearch": "look for changed files when a search starts",
    "sync.onSessionStart": "index changed files when the app opens",
    "sync.intervalMinutes": "look for changed files this often; 0 is never",
    "sync.sessions.deltaBytes": "a transcript is indexed by itself after growing this much; 0 is any",
    "sync.sessions.deltaMessages": "or by this many lines; 0 counts bytes alone",
    "store.fts.tokenizer": "how full-text search cuts words; trigram finds parts of words, and Chinese and Japanese",
    "cache.enabled": "keep vectors of text that is gone, in case it comes back",
    "profile": "which scoring rules to follow; auto follows the configuration",
    "recency.weight": "weight of a fresh note's age, beside 1 for all else",
    "dateBoost": "weight of a day that the query names, or of the newest where it asks for now, beside 1",
    "secondStage.weight": "share of the second stage: lines, windows, letters of the first 20 candidates",
    "secondStage.neighbour": "points a chunk loses next to a better chunk of the same note",
    "query.maxCharacters": "characters an agent gets in all, as passages around what matched; 0 gives whole passages",
    "questionTime.enabled": "read time words of a query as dates; off, they are searched as words",
    "spelling.enabled": "search words that no note holds as the nearest word that one does",
    "answer.doubtBelow": "where a window holds less than this share of a question, there are notes nearby only",
    "answer.nothingBelow": "where it holds less than this share, nothing holds these words, and agents get no hits",
    "exclude": "notes and folders left out, as patterns apart by commas: archive/, *.draft.md",
    "sessions.archives": "read the transcripts of sessions that were reset or deleted as well",
    "local.threads": "threads of a local model; 0 is the physical cores less one, at least 1",
    "remote.concurrency": "how many requests for vectors a server gets at the same time",
    "remote.withholdSecrets": "never send text that looks like a password or key to a provider elsewhere",
    "history.enabled": "keep what each note was, whoever changes it; off forgets it",
    "history.days": "so long a version of a note is kept",
    "history.megabytes": "so much room all versions may take",
    "recall.log": "write down what agents ask over MCP and get, on this machine only",
    "recall.maxInjectedChars": "most characters of snippets in one answer to an agent; 0 is any",
}
"""What each knob is for, by its key."""
KNOBS = (*OPENCLAW_KNOBS, *OWN_KNOBS)

BY_KEY: Mapping[str, Knob] = MappingProxyType({knob.key: knob for knob in KNOBS})

TUNE_KEYS: tuple[str, ...] = ("profile", *(knob.key for knob in KNOBS if knob.tunes))
"""The knobs that rank again, in the order of the screen."""


def find_knob(name: str) -> Knob:
    """Return the knob called `name`: a full key, or its unique tail such as `minScore`. Raises SettingError."""
    if name in BY_KEY:
        return BY_KEY[name]
    tails = [knob for knob in KNOBS if knob.key.endswith(f".{name}") or knob.label == name]
    if len(tails) == 1:
        return tails[0]
    if tails:
        raise SettingError(f"{name!r} could mean {' or '.join(knob.key for knob in tails)}.", "Give the whole key.")
    near = difflib.get_close_matches(name, list(BY_KEY), n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]}?" if near else "memory-tui config lists the keys."
    raise SettingError(f"There is no setting called {name!r}.", hint)


def check(knob: Knob, value: object) -> Scalar:
    """Return `value` as `knob` takes it. Raises SettingError with the range when it does not fit.

    What a knob takes is told by the kind of its default: a choice, a truth, a text, a number, a whole number.
    """
    if knob.choices:
        if value in knob.choices:
            return str(value)
        raise SettingError(f"{knob.key} is one of {', '.join(knob.choices)}, not {value!r}.", "")
    if isinstance(knob.default, bool):
        if isinstance(value, bool):
            return value
        raise SettingError(f"{knob.key} is true or false, not {value!r}.", "")
    if isinstance(knob.default, str):
        if isinstance(value, str):
            return value
        raise SettingError(f"{knob.key} is text, not {value!r}.", "")
    # A truth is an int to Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(f"{knob.key} is a number from {knob.low:g} to {knob.top:.10g}, not {value!r}.", "")
    if not knob.low <= value <= knob.top:
        raise SettingError(f"{knob.key} goes from {knob.low:g} to {knob.top:.10g}; {value:g} is outside.", "")
    if isinstance(knob.default, float):
        return float(value)
    if value != int(value):
        raise SettingError(f"{knob.key} is a whole number, not {value:g}.", "")
    return int(value)


_SWITCHES = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


def parse(knob: Knob, text: str) -> Scalar:
    """Turn `text` as a person typed it into a value of `knob`. Raises SettingError."""
    word = text.strip()
    if isinstance(knob.default, str):
        return check(knob, word)
    if isinstance(knob.default, bool):
        return check(knob, _SWITCHES.get(word.lower(), word))
    try:
        return check(knob, float(word))
    except ValueError:
        # Raises the error that names the range.
        return check(knob, word)


def by_option(option: str, key: str, value: object) -> tuple[str, str]:
    """Return the change of `key` that an option of the command line asks for. Raises SettingError naming the option."""
    try:
        parse(BY_KEY[key], str(value))
    except SettingError as error:
        raise SettingError(error.message.replace(key, option), f"Name such a value, or leave {option} out.") from None
    return key, str(value)


def show(knob: Knob, value: Scalar) -> str:
    """Write `value` in the few characters that the screen gives it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.2f}".removeprefix("0") if 0 < value < 1 else f"{value:g}"
    return f"{value} {knob.unit}".rstrip() or "none"


class Value(Struct, frozen=True):
    """A setting's value and where it came from, in words: default, profile ..., a file and line, --set."""

    value: Scalar
    origin: str


class Settings(Struct, frozen=True):
    """A value for every knob; immutable, so that two of them can be compared side by side."""

    values: Mapping[str, Value]

    @classmethod
    def defaults(cls) -> Settings:
        """Return every knob at its documented default."""
        return cls(MappingProxyType({knob.key: Value(knob.default, "default") for knob in KNOBS}))

    def set(self, key: str, value: object, origin: str) -> Settings:
        """Return a copy in which `key` is `value`. Raises SettingError."""
        return self.update({key: value}, origin)

    def update(self, changes: Mapping[str, object], origin: str) -> Settings:
        """Return a copy with all of `changes`, which all came from `origin`. Raises SettingError."""
        checked = {key: Value(check(find_knob(key), value), origin) for key, value in changes.items()}
        return Settings(MappingProxyType({**self.values, **checked}))

    @property
    def profile(self) -> Profile:
        """Return the rules in force."""
        return PROFILES[str(self.values["profile"].value)]

    def number(self, key: str) -> float:
        """Return the value of a numeric knob."""
        return float(self.values[key].value)

    def whole(self, key: str) -> int:
        """Return the value of a knob that counts."""
        return int(self.values[key].value)

    def on(self, key: str) -> bool:
        """Return the value of a switch, or that a number is not 0."""
        return bool(self.values[key].value)

    def word(self, key: str) -> str:
        """Return the value of a choice."""
        return str(self.values[key].value)


# --- profiles ---------------------------------------------------------------------------------------------------------

OLDER_OPENCLAW = "openclaw-2026.3"
NEWEST_OPENCLAW = "openclaw-2026.9"
OWN_PROFILE = "recommended"


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

OPENCLAW_2026_9 = Profile(
    name=NEWEST_OPENCLAW,
    title="OpenClaw 2026.9.6",
    text_score="boosted",
    fewest_candidates=200,
    terms=("decay", "importance", "project"),
    rescues=True,
    exact_paths=True,
    chunking="2026.9",
    fixed=_FIXED,
    ignores={**_NO_ADDITIONS, **dict.fromkeys(_FIXED, "2026.9 has no setting for this; recommended has")},
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


def profile_named(name: str) -> Profile:
    """Return the profile called `name`. Raises SettingError."""
    if name not in PROFILES:
        raise SettingError(f"There is no profile {name!r}.", f"Choose one of {', '.join(PROFILES)}.")
    return PROFILES[name]


def compose(name: str, configured: Mapping[str, Value], chosen: Mapping[str, Value]) -> Settings:
    """Return the settings of profile `name`: defaults, then `configured`, the profile's own values, then `chosen`.

    `configured` comes from a configuration file, `chosen` from the command line or the screen. Raises SettingError.
    """
    profile = profile_named(name)
    of_profile = {key: Value(value, f"profile {name}") for key, value in profile.values.items()}
    fixed = {key: Value(value, f"profile {name}") for key, value in profile.fixed.items()}
    # The profile is `name`, whatever "auto" it was chosen by; only the place of that choice is kept.
    choice = chosen.get("profile") or configured.get("profile")
    values = {**Settings.defaults().values, **configured, **of_profile, **chosen, **fixed}
    values["profile"] = Value(name, choice.origin if choice else "default")
    return Settings(MappingProxyType(values))


# --- the keys of a configuration file --------------------------------------------------------------------------------

KeyKind = Literal[
    "knob", "switch", "whole", "choice", "choices", "text", "path", "paths", "secret", "headers", "size", "zone", "any"
]


class Key(Struct, frozen=True):
    """One documented key.

    `path` is below the section of memory search, or from the top of the file. `effect` says why it changes nothing
    here, and is empty where it takes effect. `low` and `high` bound a number.
    """

    path: str
    kind: KeyKind
    default: object
    meaning: str
    effect: str = ""
    low: float = 0
    high: float = float("inf")
    choices: tuple[str, ...] = ()


def _knobs(knobs: tuple[Knob, ...]) -> tuple[Key, ...]:
    """Return the rows of the keys that are knobs: their type and range stand in the table of knobs."""
    return tuple(Key(knob.key, "knob", knob.default, knob.help) for knob in knobs)


def _below(prefix: str, *rows: Key) -> tuple[Key, ...]:
    """Return `rows` with `prefix` before the path of each."""
    return tuple(replace(row, path=prefix + row.path) for row in rows)


PROVIDERS = ("auto", *registry.NAMES)
NOT_ASKED = ("bedrock", "github-copilot")
"""Providers of OpenClaw from 2026.8 on whose wire and login are their own, whatever `models.providers` says of them."""
COMPATIBLE_APIS = ("openai-completions", "openai-responses")
"""What `models.providers.<id>.api` says of a server that embeds as OpenAI does."""

_NO_LOCAL = "none here: a local model runs with a context of 512 tokens"
_NO_SESSIONS = "none here: changed transcripts are noticed at any time"
_NO_AGENT = "none here: memory-tui runs no agent"
_NO_BRIDGE = "none here: memory-tui runs qmd itself"
_NO_UPKEEP = "none here: no clock updates QMD"
_NO_EXPORT = "none here: sources names sessions"
_NO_REMOTE = "none here: the table is a folder"
_NO_HOOK = "none here: the plug-in does it"
_NO_RECALL = "none here: sources with sessions and experimental.sessionMemory search them"
_NO_PROFILES = "none here: logins with their keys are read from auth-profiles.json, in the order of auth.order"
_BATCH_SERVICES = " or ".join(filter(None, (", ".join(registry.BATCHING[:-1]), registry.BATCHING[-1])))

_BATCHES = f"leave 256 texts or more to the slow and cheap batch service of {_BATCH_SERVICES}"
_NO_BUILD = "none here: memory-tui has its own sqlite-vec, with the same answers"
_CACHE = "the most vectors kept of text that is gone; the least recently used go first"
_COMPACTED = "index a session after it was compacted"
_SOURCES, _MEDIA = ("memory", "sessions"), ("image", "audio", "all")
SEARCH_KEYS: tuple[Key, ...] = (
    Key("enabled", "switch", True, "whether the agent has memory search at all"),
    Key("sources", "choices", ("memory",), "what is searched: notes, and transcripts of sessions", choices=_SOURCES),
    Key("extraPaths", "paths", (), "more notes and folders of notes; an agent's own are added to the general ones"),
    Key("rememberAcrossConversations", "switch", None, "recall earlier conversations too (2026.8)", _NO_RECALL),
    Key("multimodal.enabled", "switch", False, "embed images and sounds below extraPaths, by Gemini"),
    Key("multimodal.modalities", "choices", ("all",), "which of them", choices=_MEDIA),
    Key("multimodal.maxFileBytes", "whole", 10_485_760, "larger files are left out", low=1),
    Key("experimental.sessionMemory", "switch", False, "allow transcripts as a source"),
    Key("provider", "text", "auto", "who turns text into vectors"),
    Key("remote.baseUrl", "text", None, "address of the provider"),
    Key("remote.apiKey", "secret", None, "key of the provider"),
    Key("remote.headers", "headers", None, "headers that are sent along"),
    *_below(
        "remote.batch.",
        Key("enabled", "switch", False, _BATCHES),
        Key("wait", "switch", True, "whether memory-tui index stays until the batch is done"),
        Key("concurrency", "whole", 2, "batches at once", "none here: one job runs at a time", low=1),
        Key("pollIntervalMs", "whole", 2000, "first pause between two looks at a batch; pauses grow", low=1),
        Key("timeoutMinutes", "whole", 60, "when a batch is given up, and its texts are sent directly", low=1),
    ),
    Key("fallback", "text", "none", "who is asked when the provider fails, with a model of its own"),
    Key("model", "text", None, "the provider's model; without it, its usual one"),
    Key("outputDimensionality", "whole", None, "length of the vectors of a model with several", "", 1, MOST_DIMS),
    Key("inputType", "text", None, "what an embedded text is called (2026.8)"),
    Key("queryInputType", "text", None, "the same, of a query (2026.8)"),
    Key("documentInputType", "text", None, "the same, of a note (2026.8)"),
    *_below(
        "local.",
        Key("modelPath", "text", registry.row("local").model, "GGUF file of the provider local"),
        Key("modelCacheDir", "path", None, "where downloaded models are kept"),
        Key("contextSize", "whole", 4096, "context of the local model (2026.4)", _NO_LOCAL, 1),
    ),
    Key("store.driver", "choice", "sqlite", "kind of database", "none here: there is only one", choices=("sqlite",)),
    Key("store.path", "path", None, "OpenClaw's own index, which compare-index reads and nothing here writes"),
    Key("store.vector.enabled", "switch", True, "whether sqlite-vec is used", _NO_BUILD),
    Key("store.vector.extensionPath", "path", None, "another build of sqlite-vec", _NO_BUILD),
    Key(
        "sync.sessions.postCompactionForce", "switch", True, "index a session again when it was compacted", _NO_SESSIONS
    ),
    Key("sync.embeddingBatchTimeoutSeconds", "whole", None, "when a batch of texts is given up", low=1),
    Key("cache.maxEntries", "whole", 50_000, _CACHE, low=1),
    *_knobs(OPENCLAW_KNOBS),
)
"""Keys below the section of memory search: what memory-tui can change while it runs is a knob."""

LANCEDB = "plugins.entries.memory-lancedb.config."
"""How the keys of OpenClaw's LanceDB plug-in begin."""
BACKEND, QMD = "memory.backend", "memory.qmd."
"""Who searches, and how the keys of QMD begin."""
_QMD = (
    Key("command", "text", "qmd", "QMD: the program: a name, a path, or node and the path of its qmd.js"),
    Key("includeDefaultMemory", "switch", True, "QMD: search MEMORY.md, memory.md and memory/"),
    Key("paths", "any", (), "QMD: more folders to search, each with path, name and pattern"),
    Key("sessions.enabled", "switch", False, "QMD: export transcripts as notes, and search them", _NO_EXPORT),
    Key("sessions.exportDir", "path", None, "QMD: folder of the exported transcripts", _NO_EXPORT),
    Key("sessions.retentionDays", "whole", None, "QMD: days a transcript stays exported", _NO_EXPORT, low=1),
    Key("update.interval", "text", "5m", "QMD: 0: bring its index up to date by hand alone"),
    Key("update.debounceMs", "whole", 15_000, "QMD: the least time between two updates that nobody asked for"),
    Key("update.onBoot", "switch", True, "QMD: bring it up to date at the start too", _NO_UPKEEP),
    Key("update.waitForBootSync", "switch", False, "QMD: let searches wait for that", _NO_UPKEEP),
    Key("update.startup", "text", None, "QMD: off: no update at the start (2026.5)", _NO_UPKEEP),
    Key("update.startupDelayMs", "whole", None, "QMD: wait before the update at the start (2026.5)", _NO_UPKEEP),
    Key("update.embedInterval", "text", "60m", "QMD: how often new texts are embedded", _NO_UPKEEP),
    Key("update.commandTimeoutMs", "whole", 30_000, "QMD: when any other command is given up", low=1),
    Key("update.updateTimeoutMs", "whole", 120_000, "QMD: when an update is given up", low=1),
    Key("update.embedTimeoutMs", "whole", 120_000, "QMD: when embedding is given up", low=1),
    Key("limits.maxResults", "whole", 6, "QMD: most hits", low=1),
    Key("limits.maxSnippetChars", "whole", 700, "QMD: most characters of a hit", low=1),
    Key("limits.maxInjectedChars", "whole", 4000, "QMD: most characters altogether", low=1),
    Key("limits.timeoutMs", "whole", 4000, "QMD: when a search is given up", low=1),
    Key("scope", "any", None, "QMD: in which chats it may be asked"),
    Key("searchMode", "choice", "search", "QMD: search, vsearch or query", choices=("search", "vsearch", "query")),
    Key("mcporter.enabled", "switch", False, "QMD: ask through the mcporter bridge", _NO_BRIDGE),
    Key("mcporter.serverName", "text", "qmd", "QMD: its name there", _NO_BRIDGE),
    Key("mcporter.startDaemon", "switch", True, "QMD: start the bridge", _NO_BRIDGE),
    Key("searchTool", "text", None, "QMD: tool of the bridge", _NO_BRIDGE),
)
_COMPACTION = (
    Key("reserveTokensFloor", "whole", 20_000, "room kept free in the context"),
    Key("postIndexSync", "choice", "async", _COMPACTED, _NO_SESSIONS, choices=("off", "async", "await")),
    *_below(
        "memoryFlush.",
        Key("enabled", "switch", True, "let the agent write down what it knows before it is compacted"),
        Key("softThresholdTokens", "whole", 4000, "how long before"),
        Key("forceFlushTranscriptBytes", "size", 2_097_152, "and at the latest at this size; 0 is never"),
        Key("prompt", "text", None, "what it is asked", _NO_AGENT),
        Key("systemPrompt", "text", None, "and told", _NO_AGENT),
        Key("model", "text", None, "by which model (2026.8)", _NO_AGENT),
    ),
)
_ACCOUNT = (
    Key("baseUrl", "text", None, "address of the provider for everything, where remote.baseUrl names none"),
    Key("apiKey", "secret", None, "its key for everything, after remote.apiKey, logins and the provider's variable"),
    Key("headers", "headers", None, "headers that are sent along by everything; remote.headers count before them"),
)
_LANCEDB = (
    Key("dbPath", "text", None, "folder of the table; ~/.openclaw/memory/lancedb"),
    Key("storageOptions", "headers", None, "how an object store is reached: endpoint, region, keys", _NO_REMOTE),
    Key("embedding.provider", "text", None, "who makes its vectors; openai where a model or a key is named"),
    Key("embedding.model", "text", None, "the model"),
    Key("embedding.apiKey", "secret", None, "key of the provider"),
    Key("embedding.baseUrl", "text", None, "address of the provider"),
    Key("embedding.dimensions", "whole", None, "length of the vectors, where a model has several", low=1),
    Key("autoRecall", "switch", True, "entries before each answer", _NO_HOOK),
    Key("autoCapture", "switch", False, "entries from what the user says", _NO_HOOK),
    Key("captureMaxChars", "whole", 500, "longer texts are not captured", _NO_HOOK, low=100),
    Key("recallMaxChars", "whole", 1000, "characters of a prompt that entries are searched by", _NO_HOOK, low=100),
    Key("customTriggers", "any", (), "words that make a text worth capturing, beside the usual ones", _NO_HOOK),
)

DEFAULTS = "agents.defaults."
INJECTION = f"{DEFAULTS}contextInjection"
MEMORY_GET = f"{DEFAULTS}contextLimits.memoryGetMaxChars"
_INJECTED = "most characters of MEMORY.md that the agent is given at the start: memory-tui prompt --budget"
_SANDBOXES = "which sessions run in a sandbox: memory-tui openclaw flush"
_INJECTED_ALL = "the same, of all files of the prompt together; 150000, from 2026.8 on 60000"
_INJECTS = "whether files are put into the prompt; never: memory-tui prompt has none"
_GETS = "the most characters that memory_get and memory-tui get give"
_RW_ONLY = "what those may do with the workspace; only rw lets them flush: memory-tui openclaw flush"
_OF_AGENT = _below(
    DEFAULTS,
    Key("sandbox.mode", "choice", "off", _SANDBOXES, choices=("off", "non-main", "all")),
    Key("sandbox.workspaceAccess", "choice", "none", _RW_ONLY, choices=("none", "ro", "rw")),
    Key("bootstrapMaxChars", "whole", 20_000, _INJECTED, low=1),
    Key("bootstrapTotalMaxChars", "whole", None, _INJECTED_ALL, low=1),
    Key("contextInjection", "choice", "always", _INJECTS, choices=("always", "continuation-skip", "never")),
    Key("contextLimits.memoryGetMaxChars", "whole", 12_000, _GETS, "", 1, 250_000),
    Key("contextLimits.postCompactionMaxChars", "whole", 1800, "the same of AGENTS.md after a compaction", _NO_AGENT),
)
OF_AGENT = tuple(key.path.removeprefix(DEFAULTS) for key in _OF_AGENT)
"""Keys below agents.defaults that an agent can have of its own."""

_ZONE = "the user's time zone, by which a day begins; without it, this machine's"
_BACKEND = "who searches for the agent: the built-in index, or the program QMD; --backend"
_CITATIONS = "whether an agent is told where it has something from: memory-tui mcp"
_ORDER = "which login of a provider is tried first; only those with an API key embed"
_WRITER = "the release of OpenClaw that wrote this file last; without a program on the search path, auto goes by it"
_SLOT = (
    "which plug-in is the agent's memory; memory-tui: the profile of its entry holds here too; memory-lancedb: "
    "memory-tui ltm"
)
_RANKED = "how the agent's recalls are ranked where memory-tui is its memory"

FILE_KEYS: tuple[Key, ...] = (
    Key(f"{DEFAULTS}workspace", "path", None, "folder of the default agent"),
    *_OF_AGENT,
    Key(f"{DEFAULTS}userTimezone", "zone", None, _ZONE),
    Key(BACKEND, "choice", "builtin", _BACKEND, choices=("builtin", "qmd")),
    Key("memory.citations", "choice", "auto", _CITATIONS, choices=("auto", "on", "off")),
    *_below(QMD, *_QMD),
    *_below(f"{DEFAULTS}compaction.", *_COMPACTION),
    *_below(
        "hooks.internal.entries.session-memory.",
        Key("enabled", "switch", None, "save the end of a session as a note", _NO_AGENT),
        Key("messages", "whole", 15, "how many messages a session note holds", low=1),
        Key("llmSlug", "switch", None, "let a model name the note", _NO_AGENT),
    ),
    *(key for account in registry.ACCOUNTS.values() for key in _below(f"models.providers.{account}.", *_ACCOUNT)),
    Key("auth.profiles", "any", None, "names, kinds and e-mail addresses of logins", _NO_PROFILES),
    Key("auth.order", "any", None, _ORDER),
    Key("meta.lastTouchedVersion", "text", "", _WRITER),
    Key("plugins.slots.memory", "text", "memory-core", _SLOT),
    *_below(LANCEDB, *_LANCEDB),
    *_below(
        "plugins.entries.",
        Key("memory-tui.config.profile", "choice", OWN_PROFILE, _RANKED, choices=tuple(PROFILES)),
        Key("memory-core.config.dreaming", "any", None, "promotion of memories at night (2026.8)", _NO_AGENT),
        Key("active-memory", "any", None, "recall before each answer (2026.8)", _NO_AGENT),
    ),
)

_SCOPE = "workspaces that are kept here too, apart by commas: this, OWNER/NAME, group:ROLE, all"
_SHARED = (
    Key("url", "text", None, "PostgreSQL that a team shares its index in: postgresql://LOGIN@HOST/DATABASE"),
    Key("password", "secret", None, "its password, where neither PGPASSWORD nor PGPASSFILE has one"),
    Key("tenant", "text", "default", "whose index it is, where several teams use one database"),
    Key("name", "text", None, "what this workspace is called there: OWNER/NAME"),
    Key("publish", "switch", False, "publish the index after each sync"),
    Key("mirror.scope", "text", "", _SCOPE),
    Key("mirror.maxChunks", "whole", 300_000, "chunks that a mirror holds at most", low=1),
    Key("askTimeoutMs", "whole", 2000, "how long a search waits for the database", low=1),
    Key("silentAfterSeconds", "whole", 600, "after how long another machine may publish a workspace", low=1),
)
OWN_KEYS: tuple[Key, ...] = (
    *_knobs(OWN_KNOBS),
    Key("workspace", "path", None, "folder of the notes"),
    *_below("shared.", *_SHARED),
)
"""Keys that only memory-tui's own configuration has."""

BY_PATH: Mapping[str, Key] = MappingProxyType({key.path: key for key in (*SEARCH_KEYS, *FILE_KEYS, *OWN_KEYS)})


def find_key(name: str) -> Key | None:
    """Return the documented key called `name`: whole, or by a tail that no other key has; None for no such key."""
    fitting = [key for key in BY_PATH.values() if key.path.endswith(f".{name}")]
    return BY_PATH.get(name, fitting[0] if len(fitting) == 1 else None)


def of_backend(name: str) -> Key | None:
    """Return the key called `name` where it chooses or configures the backend, else None: `--set` takes those too."""
    key = find_key(name)
    return key if key and key.path.startswith((BACKEND, QMD)) else None


_BATCH = "a batch is waited for, 2 at once, looked at every 2000 ms, given up after 60 minutes"

RETIRED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("chunking", "chunkSize", "chunkOverlap"), "chunks are 400 tokens with 80 repeated"),
        "query.hybrid": "weights are 0.7 and 0.3, MMR is on with lambda 0.7, age halves a score in 30 days",
        "sync": "files are watched after 1500 ms of quiet, and looked for at session start and on search",
        "cache.maxEntries": "the cache keeps 50,000 vectors",
        **{f"remote.batch.{name}": _BATCH for name in ("wait", "concurrency", "pollIntervalMs", "timeoutMinutes")},
        "remote.nonBatchConcurrency": "4 files are embedded at once",
        **dict.fromkeys(("local.contextSize", "local.modelCacheDir"), "nothing replaces it"),
        **dict.fromkeys(("store.path", "store.driver"), "the index is in the agent's database"),
        "qmd": "QMD is no backend any more",
    }
)
"""What 2026.9 always does in the place of each key that it took away, below the section of memory search."""


def retired(key: str) -> str:
    """Return what 2026.9 always does in the place of `key`, named below its section; empty where it has the key."""
    # A key below one that was taken away is gone with it; the dots keep "sync" from fitting "syncing".
    return next((rule for name, rule in RETIRED.items() if f"{key}.".startswith(f"{name}.")), "")
