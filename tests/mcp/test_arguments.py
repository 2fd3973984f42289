"""Arguments are read as pydantic reads them by the same schemas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from memory_tui.core.errors import QueryError
from memory_tui.mcp import arguments
from memory_tui.mcp.schemas import recorded

TOOLS = {
    "SearchArguments": arguments.search_arguments,
    "GetArguments": arguments.get_arguments,
    "RecallArguments": lambda item: arguments.entry_arguments("memory_recall", item),
    "StoreArguments": lambda item: arguments.entry_arguments("memory_store", item),
    "ForgetArguments": lambda item: arguments.entry_arguments("memory_forget", item),
}
NAMES = sorted({"x", "maxResult", *(name for kind in TOOLS for name in recorded()[kind]["properties"])})
VALUES = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just(10**400),
    st.integers(-2, 1100) | st.floats(-0.5, 1.5),
    st.integers(-2, 2).map(float) | st.integers(-2, 1100).map(str) | st.floats().map(str) | st.just("\ud800"),
    st.sampled_from(["memory", "all", "sessions", "fact", "Memory", "", " 3 ", "1_000", "٣"]),
    st.sampled_from(
        ["yes", "NO", "On", "oFF", "t", "F", "y", "n", "true", "False", "0", "1", " true", "\u212a", "yeſ"]
    ),
    st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def number(value: object) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            found = math.nan
        if math.isfinite(found):
            return found
    raise PydanticCustomError("number", "no number")


def whole(value: object) -> int:
    try:
        return math.trunc(number(value))
    except PydanticCustomError:
        raise PydanticCustomError("whole", "no whole number") from None


def of_field(field: Mapping[str, Any]) -> Any:
    if "enum" in field:
        return Literal[tuple(field["enum"])]
    bounds = Field(ge=field.get("minimum"), le=field.get("maximum"))
    kinds = {
        "integer": Annotated[int, bounds, BeforeValidator(whole)],
        "number": Annotated[float, bounds, BeforeValidator(number)],
        "boolean": bool,
        "string": str,
    }
    return kinds[field["type"]]


def reader(kind: str) -> TypeAdapter[Any]:
    schema = recorded()[kind]
    fields = {name: of_field(field) for name, field in schema["properties"].items()}
    made = TypedDict(kind, {n: one if n in schema["required"] else NotRequired[one] for n, one in fields.items()})  # type: ignore[operator]
    with_config(extra="forbid")(made)
    return TypeAdapter(made)


READERS = {kind: reader(kind) for kind in TOOLS}


def wrong(kind: str, error: ValidationError) -> str:
    """The beginning of the sentence for what pydantic found wrong."""
    found = error.errors(include_url=False)
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    name, limits = str(first["loc"][0]), first.get("ctx", {})
    words = recorded()[kind]["properties"].get(name, {}).get("enum")
    # Half a character is no text for pydantic where one of a few words is wanted; the sentence names these even so.
    of_words = f"one of {', '.join(words)}," if words else "text,"
    wanted = {
        "whole": "a whole number,",
        "number": "a number,",
        "greater_than_equal": f"at least {limits.get('ge', 0):g},",
        "less_than_equal": f"at most {limits.get('le', 0):g},",
        "missing": "required.",
    }.get(first["type"], of_words)
    return "There is no argument " if first["type"] == "extra_forbidden" else f"{name} is {wanted}"


def read_by_pydantic(kind: str, known: dict[str, Any]) -> dict[str, Any] | str:
    """The arguments, or the beginning of the sentence for what is wrong with them."""
    try:
        return READERS[kind].validate_python(known)
    except ValidationError as error:
        return wrong(kind, error)


@pytest.mark.parametrize("kind", list(TOOLS))
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(item=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4), needed=VALUES)
def test_arguments_are_read_as_pydantic_reads_them(kind: str, item: dict[str, Any], needed: object) -> None:
    fields = recorded()[kind]
    known = {name: value for name, value in item.items() if name in fields["properties"] or name in ("x", "maxResult")}
    known |= {name: needed for name in fields["required"] if needed is not None}
    expected = read_by_pydantic(kind, {name: one for name, one in known.items() if one is not None})
    if isinstance(expected, str):
        with pytest.raises(QueryError) as met:
            TOOLS[kind](known)
        assert met.value.message.startswith(expected)
    else:
        assert repr(TOOLS[kind](known)) == repr(expected)


def test_an_unknown_name_gets_the_nearest_known_one() -> None:
    with pytest.raises(QueryError) as met:
        arguments.search_arguments({"query": "a", "maxResult": 3})
    assert met.value.next_step == "Did you mean maxResults?"
    with pytest.raises(QueryError) as met:
        arguments.get_arguments({"zzz": 3})
    assert met.value.next_step == "There are path, from, lines."
