"""What a provider's batch service is: a file of texts goes up, a job works on it, a file of vectors comes back.

The wire formats are in batch_openai and batch_gemini, the calls in batch_service; who remembers a job is the index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from memory_tui.embed.answers import Malformed

MOST_LINES = 50_000
"""The most texts of a job, as OpenAI has it for embeddings."""
MOST_BYTES = 4 << 20
"""The most UTF-8 bytes of texts in a job, about a million tokens: two of them fit into what OpenAI lets a new account
have in the queue (3,000,000), and a job that fails costs little.
"""

Phase = Literal["running", "completed", "failed", "expired", "cancelled"]

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class Look:
    """What a job was doing when it was looked at: how many of its texts are `done` and `failed`, 0 where unknown.

    `files` are those that hold results or errors, once it has ended; `why` is the provider's reason for a bad end.
    """

    phase: Phase
    done: int = 0
    failed: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a result file: the text's `id`, and its vector as it came or why there is none."""

    id: str
    vector: object = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Upload:
    """How a file goes up."""

    path: str
    content_type: str
    content: bytes


class BatchApi(Protocol):
    """The wire format of one batch service. What reads an answer raises Malformed when it makes no sense."""

    def line(self, text_id: str, text: str) -> Mapping[str, object]:
        """The request for one text, to be a line of the file."""
        ...

    def upload(self, lines: bytes, name: str) -> Upload:
        """How the file called `name` goes up."""
        ...

    def file_id(self, answer: object) -> str:
        """What the uploaded file is called there."""
        ...

    def create(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """Path and body that make a job of an uploaded file."""
        ...

    def job_id(self, answer: object) -> str:
        """What the job is called there."""
        ...

    def recent(self) -> str:
        """The path that lists the latest jobs."""
        ...

    def find(self, answer: object, file_id: str) -> str:
        """The job in that list that was made of `file_id`; empty when there is none."""
        ...

    def job(self, job_id: str) -> str:
        """The path of a job."""
        ...

    def cancel(self, job_id: str) -> str:
        """The path that ends a job when something is posted there."""
        ...

    def look(self, answer: object) -> Look:
        """What the job is doing."""
        ...

    def file(self, file_id: str) -> str:
        """The path of a file, where it can be deleted."""
        ...

    def content(self, file_id: str) -> str:
        """The path of what a file holds."""
        ...

    def result(self, line: Mapping[str, object]) -> Line:
        """What one line of a result file says."""
        ...


def fields(tree: object, *names: str) -> Mapping[str, object]:
    """The object at `names` below `tree`, an empty one where there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def text(tree: object, *names: str) -> str:
    """The text at `names` below `tree`, empty where there is none."""
    value = fields(tree, *names[:-1]).get(names[-1])
    return value if isinstance(value, str) else ""


def number(tree: object, *names: str) -> int:
    """The count at `names` below `tree`, as a number or in digits; 0 where there is none."""
    value = fields(tree, *names[:-1]).get(names[-1])
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


def name_in(value: str, folder: str = "") -> str:
    """`value`, a name that goes into a path, perhaps below `folder`. Raises Malformed for what could lead elsewhere."""
    if not _ID.fullmatch(value.removeprefix(f"{folder}/") if folder else value):
        raise Malformed("a name that is none")
    return value


def failure_of(tree: object) -> str:
    """What an `error` below `tree` says: its message, else that it is there at all; empty without one."""
    error = fields(tree).get("error")
    return "" if not error else error if isinstance(error, str) else text(error, "message") or "refused"
