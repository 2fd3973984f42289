"""Data classes that are made quickly are those of the standard library in all that anybody sees."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
import re
from typing import Any, ClassVar

import pytest

from memory_tui import records

Maker = Any


def shapes(maker: Maker, **options: bool) -> list[type]:
    """The same classes by either maker: plain, with defaults, derived, with methods of their own."""

    @maker(**options)
    class Point:
        x: int
        y: float = 0.5
        tags: list[str] = dataclasses.field(default_factory=list, hash=False)
        note: str = dataclasses.field(default="", repr=False, compare=False)
        counted: dict[str, int] = dataclasses.field(init=False, default_factory=dict, compare=False)
        KIND: ClassVar[str] = "point"

        def twice(self) -> int:
            return 2 * self.x

    @maker(**options)
    class Checked(Point):
        z: str = "z"

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("negative")

    @maker(**options)
    class Nothing:
        """Has no field."""

    @maker(**options)
    class Own:  # noqa: PLW1641 - what becomes of its hash is compared
        """Says itself what it is."""

        x: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

    return [Point, Checked, Nothing, Own]


OPTIONS = [dict(zip(("frozen", "slots"), both, strict=True)) for both in itertools.product((False, True), repeat=2)]


def seen(cls: type, run: Any) -> object:
    """What `run` makes of `cls`, or how it fails."""
    try:
        return run(cls)
    except Exception as error:  # noqa: BLE001 - each failure is compared
        return type(error), re.sub(r"\.<locals>\.\w+\.", ".", str(error))


RUNS = {
    "fields": lambda cls: [(f.name, f.type, f.repr, f.compare, f.init) for f in dataclasses.fields(cls)],
    "match": lambda cls: cls.__match_args__,
    "slots": lambda cls: getattr(cls, "__slots__", None),
    "text": lambda cls: repr(cls(3)).replace("shapes.<locals>.", ""),
    "named": lambda cls: dataclasses.asdict(cls(x=3, tags=["a"])),
    "too few": lambda cls: repr(cls()),
    "too many": lambda cls: cls(1, 2, 3, 4, 5, 6, 7),
    "unknown": lambda cls: cls(1, what=2),
    "after": lambda cls: repr(cls(-1)),
    "own lists": lambda cls: cls(1).tags is cls(1).tags,
    "equal": lambda cls: (cls(1) == cls(1), cls(1) == cls(2), cls(1, note="a") == cls(1, note="b"), cls(1) == (1,)),
    "hash": lambda cls: hash(cls(1, 2.5, ["a"])),
    "replaced": lambda cls: repr(dataclasses.replace(cls(1), x=7)),
    "assigned": lambda cls: setattr(cls(1), "x", 2),
    "added": lambda cls: setattr(cls(1), "other", 2),
    "deleted": lambda cls: delattr(cls(1), "x"),
    "copied": lambda cls: copy.deepcopy(cls(1, 2.0, ["a"])) == cls(1, 2.0, ["a"]),
    "method": lambda cls: (cls(4).twice(), cls.KIND),
    "doc": lambda cls: cls.__name__,
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_are_those_of_the_library(options: dict[str, bool]) -> None:
    ours, library = shapes(records.dataclass, **options), shapes(dataclasses.dataclass, **options)
    for (own, its), what in itertools.product(zip(ours, library, strict=True), RUNS):
        if what == "added" and all(options.values()):
            # The library compares with the class before it got slots, and fails at `super`; ours refuses.
            assert seen(own, RUNS[what])
            continue
        for _ in range(2):
            assert seen(own, RUNS[what]) == seen(its, RUNS[what]), (own, what)


@records.dataclass(frozen=True, slots=True)
class Kept:
    """Found by its name, as pickle needs it."""

    x: int
    y: str = "y"


def test_an_instance_travels() -> None:
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


def test_a_class_compiles_nothing_before_its_first_instance() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Late:
        """Made here."""

        x: int

    before = vars(Late)["__init__"]
    assert Late(1) == Late(1)
    assert vars(Late)["__init__"] is not before
