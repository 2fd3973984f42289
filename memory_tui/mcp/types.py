"""The types that the tools take or return; schemas.json is made of them.

Names and meaning are OpenClaw's (2026.3.13, with the scores, the bound and the staleness of later releases). Only
memory-tui has `about`, `held`, `maxCharacters`, `nearest`, `nearestMisses`, `empty`, `notices`, `roots` and `clamped`.
`about` comes first in every order: hosts that sort the keys put it before what it speaks of, too.

Imported for type checks alone: a server that runs reads schemas.json.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

Corpus = Literal["memory", "sessions", "all"]
AnswerMode = Literal["hybrid", "fts-only", "vector-only", "none"]


class SearchArguments(TypedDict):
    """The arguments of memory_search."""

    query: Annotated[str, Meta(description="What to look for, in words or as a question.")]
    maxResults: NotRequired[
        Annotated[int, Meta(ge=1, le=1000, description="How many hits at most; without it, as configured.")]
    ]
    maxCharacters: NotRequired[
        Annotated[
            int,
            Meta(
                ge=0,
                le=1_000_000,
                description="How many characters of notes at most, as passages around what matched; 0 for whole hits; "
                "without it, as configured.",
            ),
        ]
    ]
    minScore: NotRequired[
        Annotated[float, Meta(ge=0, le=1, description="What a hit has to score; without it, as configured.")]
    ]
    corpus: NotRequired[
        Annotated[
            Corpus,
            Meta(
                description="Where to look: the notes, the transcripts of sessions, or all that is configured "
                "(default)."
            ),
        ]
    ]
    nearest: NotRequired[
        Annotated[
            bool,
            Meta(description="Give the nearest hits even where nothing holds what was asked; probably not it."),
        ]
    ]


GetArguments = TypedDict(
    "GetArguments",
    {
        "path": Annotated[str, Meta(description="A note as memory_search names it: MEMORY.md, memory/2026-11-20.md.")],
        "from": NotRequired[
            Annotated[int, Meta(ge=0, description="First line, counted from 1; 0 counts as left out.")]
        ],
        "lines": NotRequired[
            Annotated[int, Meta(ge=0, description="How many lines, 120 at most; 0 counts as left out.")]
        ],
    },
)
"""The arguments of memory_get."""


class RecallArguments(TypedDict):
    """The arguments of memory_recall."""

    query: Annotated[str, Meta(description="What to look for.")]
    limit: NotRequired[Annotated[int, Meta(ge=1, le=100, description="How many at most; 5 without it.")]]


class StoreArguments(TypedDict):
    """The arguments of memory_store."""

    text: Annotated[str, Meta(description="What to remember, as one sentence.")]
    importance: NotRequired[Annotated[float, Meta(ge=0, le=1, description="From 0 to 1; 0.7 without it.")]]
    category: NotRequired[
        Annotated[
            Literal["preference", "fact", "decision", "entity", "other"],
            Meta(description="What kind of memory it is; other without it."),
        ]
    ]


class ForgetArguments(TypedDict):
    """The arguments of memory_forget."""

    query: NotRequired[Annotated[str, Meta(description="What the memory says; one clear hit is forgotten.")]]
    memoryId: NotRequired[Annotated[str, Meta(description="The id of the memory.")]]


class RecalledHit(TypedDict):
    """One recalled piece of a note; lines are counted from 1, and both are included.

    Where QMD answered the score is its own number, `rank` counts, and there are no scores of two sides.
    `copies` counts other notes that say the same, and `alsoIn` names them.
    """

    path: str
    startLine: int
    endLine: int
    score: float
    vectorScore: NotRequired[float]
    textScore: NotRequired[float]
    rank: NotRequired[int]
    snippet: str
    source: str
    citation: NotRequired[str]
    copies: NotRequired[int]
    alsoIn: NotRequired[list[str]]


class Miss(TypedDict):
    """A piece of a note that came near and was not recalled, and why."""

    path: str
    startLine: int
    endLine: int
    score: float
    reason: str


ProviderFallback = TypedDict(
    "ProviderFallback",
    {
        "from": str,
        "to": NotRequired[str],
        "model": NotRequired[str],
        "reason": str,
        "since": NotRequired[float],
        "retryAt": NotRequired[float],
    },
)
"""What answered instead of the provider that was asked for; `to` none is words alone, times are epoch seconds."""


class AnswerLevelData(TypedDict):
    """Whether the notes hold what was asked, and how likely, from 0 to 1; so many `nearest` hits were kept back."""

    level: Literal["found", "nearby only", "nothing holds these words"]
    likelihood: float
    sentence: str
    nearest: NotRequired[int]


class Empty(TypedDict):
    """Why nothing was recalled."""

    reason: str
    sentence: str
    nextStep: str


class Clamped(TypedDict):
    """What the bound on characters cost: snippets that were cut, and hits that were left out."""

    maxInjectedChars: int
    cut: int
    dropped: int


class Root(TypedDict):
    """A place where notes are read, whose notes cannot be read now or are not watched."""

    path: str
    state: Literal["gone", "unreadable", "another device", "watcher stalled"]
    detail: str


class SearchAnswer(TypedDict):
    """What memory_search gives; with `disabled` there was no search at all, and `error`, `action` say why."""

    about: NotRequired[str]
    results: list[RecalledHit]
    backend: NotRequired[Literal["builtin", "qmd"]]
    provider: NotRequired[str]
    model: NotRequired[str]
    fallback: NotRequired[ProviderFallback]
    citations: NotRequired[Literal["auto", "on", "off"]]
    mode: NotRequired[AnswerMode]
    answerLevel: NotRequired[AnswerLevelData]
    empty: NotRequired[Empty]
    nearestMisses: NotRequired[list[Miss]]
    clamped: NotRequired[Clamped]
    stale: NotRequired[bool]
    notices: NotRequired[list[str]]
    roots: NotRequired[list[Root]]
    disabled: NotRequired[bool]
    unavailable: NotRequired[bool]
    partial: NotRequired[bool]
    timedOut: NotRequired[bool]
    error: NotRequired[str]
    warning: NotRequired[str]
    action: NotRequired[str]


GetAnswer = TypedDict(
    "GetAnswer",
    {
        "about": NotRequired[str],
        "status": Literal["ok", "not_found", "error"],
        "path": str,
        "text": str,
        "from": NotRequired[int],
        "lines": NotRequired[int],
        "totalLines": NotRequired[int],
        "truncated": NotRequired[bool],
        "nextFrom": NotRequired[int],
        "disabled": NotRequired[bool],
        "error": NotRequired[str],
        "code": NotRequired[str],
        "action": NotRequired[str],
    },
)
"""What memory_get gives: lines of a note, where to go on, or why there are none."""
