"""The types that the tools take or return; schemas.json is made of them.

Names and meaning are OpenClaw's (2026.3.13, with the scores, the bound and the staleness of later releases). Only
memory-tui has `about`, `held`, `maxCharacters`, `nearest`, `nearestMisses`, `empty`, `notices`, `roots` and `clamped`.
`about` comes first in every order: hosts that sort the keys put it before what it speaks of, too.

A number may be written as text (`"5"`), as OpenClaw allows; where a whole number is wanted, a fraction is cut off. What
is null counts as left out. Nothing else is guessed: true is no number, and a name that is unknown is an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import TypedDict

from memory_tui.core.errors import QueryError
from memory_tui.core.sanitize import one_line
from memory_tui.mcp.schemas import recorded


def _number(value: object) -> float:
    """A finite number, written as one or as text."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise PydanticCustomError("number", "no number")


def _whole(value: object) -> int:
    """The same without its fraction."""
    try:
        return math.trunc(_number(value))
    except PydanticCustomError:
        raise PydanticCustomError("whole", "no whole number") from None


_WHOLE, _NUMBER = BeforeValidator(_whole), BeforeValidator(_number)
Corpus = Literal["memory", "sessions", "all"]
AnswerMode = Literal["hybrid", "fts-only", "vector-only", "none"]


@with_config(extra="forbid")
class SearchArguments(TypedDict):
    """The arguments of memory_search."""

    query: Annotated[str, Field(description="What to look for, in words or as a question.")]
    maxResults: NotRequired[
        Annotated[int, Field(ge=1, le=1000, description="How many hits at most; without it, as configured."), _WHOLE]
    ]
    maxCharacters: NotRequired[
        Annotated[
            int,
            Field(
                ge=0,
                le=1_000_000,
                description="How many characters of notes at most, as passages around what matched; 0 for whole hits; "
                "without it, as configured.",
            ),
            _WHOLE,
        ]
    ]
    minScore: NotRequired[
        Annotated[float, Field(ge=0, le=1, description="What a hit has to score; without it, as configured."), _NUMBER]
    ]
    corpus: NotRequired[
        Annotated[
            Corpus,
            Field(
                description="Where to look: the notes, the transcripts of sessions, or all that is configured "
                "(default)."
            ),
        ]
    ]
    nearest: NotRequired[
        Annotated[
            bool,
            Field(description="Give the nearest hits even where nothing holds what was asked; probably not it."),
        ]
    ]


GetArguments = TypedDict(
    "GetArguments",
    {
        "path": Annotated[str, Field(description="A note as memory_search names it: MEMORY.md, memory/2026-11-20.md.")],
        "from": NotRequired[
            Annotated[int, Field(ge=0, description="First line, counted from 1; 0 counts as left out."), _WHOLE]
        ],
        "lines": NotRequired[
            Annotated[int, Field(ge=0, description="How many lines, 120 at most; 0 counts as left out."), _WHOLE]
        ],
    },
)
"""The arguments of memory_get."""
with_config(extra="forbid")(GetArguments)


@with_config(extra="forbid")
class RecallArguments(TypedDict):
    """The arguments of memory_recall."""

    query: Annotated[str, Field(description="What to look for.")]
    limit: NotRequired[Annotated[int, Field(ge=1, le=100, description="How many at most; 5 without it."), _WHOLE]]


@with_config(extra="forbid")
class StoreArguments(TypedDict):
    """The arguments of memory_store."""

    text: Annotated[str, Field(description="What to remember, as one sentence.")]
    importance: NotRequired[Annotated[float, Field(ge=0, le=1, description="From 0 to 1; 0.7 without it."), _NUMBER]]
    category: NotRequired[
        Annotated[
            Literal["preference", "fact", "decision", "entity", "other"],
            Field(description="What kind of memory it is; other without it."),
        ]
    ]


@with_config(extra="forbid")
class ForgetArguments(TypedDict):
    """The arguments of memory_forget."""

    query: NotRequired[Annotated[str, Field(description="What the memory says; one clear hit is forgotten.")]]
    memoryId: NotRequired[Annotated[str, Field(description="The id of the memory.")]]


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

Arguments = TypeVar("Arguments")


def search_arguments(given: Mapping[str, Any]) -> SearchArguments:
    """`given` as the arguments of memory_search. Raises QueryError."""
    return _read(SearchArguments, given)


def get_arguments(given: Mapping[str, Any]) -> GetArguments:
    """`given` as the arguments of memory_get. Raises QueryError."""
    return _read(GetArguments, given)


def entry_arguments(tool: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """`given` as the arguments of memory_recall, memory_store or memory_forget. Raises QueryError."""
    kinds: dict[str, type[Mapping[str, Any]]] = {
        "memory_recall": RecallArguments,
        "memory_store": StoreArguments,
        "memory_forget": ForgetArguments,
    }
    return _read(kinds[tool], given)


def _read(kind: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    present = {name: value for name, value in given.items() if value is not None}
    try:
        return _adapter(kind).validate_python(present)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=True)
        # A name that is unknown is the likelier cause of one that is missing.
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
        raise _sentence(first, recorded()[kind.__name__]["properties"], given) from None


_ADAPTERS: dict[str, TypeAdapter[Any]] = {}


def _adapter(kind: type[Arguments]) -> TypeAdapter[Arguments]:
    if kind.__name__ not in _ADAPTERS:
        _ADAPTERS[kind.__name__] = TypeAdapter(kind)
    return cast("TypeAdapter[Arguments]", _ADAPTERS[kind.__name__])


def _sentence(error: ErrorDetails, fields: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> QueryError:
    """What is wrong, for an agent."""
    name, kind, context = str(error["loc"][0]), error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        import difflib

        near = difflib.get_close_matches(name, fields, n=1, cutoff=0.6)
        return QueryError(
            f"There is no argument {_shown(name)}.",
            f"Did you mean {near[0]}?" if near else f"There are {', '.join(fields)}.",
        )
    meaning = str(fields[name].get("description", ""))
    if kind == "missing":
        return QueryError(f"{name} is required.", meaning)
    wanted = {
        "whole": "a whole number",
        "number": "a number",
        "greater_than_equal": f"at least {context.get('ge', 0):g}",
        "less_than_equal": f"at most {context.get('le', 0):g}",
        "literal_error": f"one of {', '.join(fields[name].get('enum', ()))}",
    }.get(kind, "text")
    return QueryError(f"{name} is {wanted}, not {_shown(given[name])}.", meaning)


def _shown(value: object) -> str:
    return one_line(repr(value), 60)
