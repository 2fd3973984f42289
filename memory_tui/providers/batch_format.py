"""The wire format of a batch service, as data. It says how a job is written and where its answers hold what."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from memory_tui.providers.base import Malformed

Phase = Literal["running", "completed", "failed", "expired", "cancelled"]
Way = tuple[str | int, ...]
"""Names of members and positions in lists, the outermost first."""
Ways = tuple[Way, ...]
"""The first that leads to something counts."""

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_BAD = 400
_PHASES: Mapping[str, Phase] = {
    "completed": "completed",
    "succeeded": "completed",
    "done": "completed",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
"""States in which a job has ended; in all others (validating, in_progress, finalizing ...) it runs."""


class JobStatus(Struct, frozen=True):
    """What a job was doing when it was polled: how many of its texts are `done` and `failed`, 0 where unknown.

    `files` are those that hold results or errors, once it has ended; `why` is the provider's reason for a bad end.
    """

    phase: Phase
    done: int = 0
    failed: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    why: str = ""


class ResultLine(Struct, frozen=True):
    """One line of a result file: the text's `id`, and its vector as it came or why there is none."""

    id: str
    vector: object = None
    error: str = ""


class Upload(Struct, frozen=True):
    """How a file goes up."""

    path: str
    content_type: str
    content: bytes


class BatchFormat(Struct, frozen=True):
    """The wire format of one batch service. What reads an answer raises Malformed when it makes no sense.

    `line` writes the request for one text (id, text), `upload` a file of such lines (content, name), `create` path and
    body that make a job of an uploaded file. In the paths `{}` stands for the name of a job or file; `recent` lists the
    latest jobs. `file_folder` and `job_folder` are what the provider puts before names, with `/`. A job of the list
    was made of a file when `made_of` leads to `mark` of the file's name. Without a `state` a job runs when it has a
    member of `begun`. `counts` are those of texts done, failed, altogether; each of `results` leads to one file.
    Of a result line, `errors` lead to what may hold an `error`, `refusal` to an HTTP status.
    """

    line: Callable[[str, str], Mapping[str, object]]
    upload: Callable[[bytes, str], Upload]
    create: Callable[[str], tuple[str, Mapping[str, object]]]
    recent: str
    job: str
    cancel: str
    file: str
    content: str
    file_id: Ways
    job_id: Ways
    listed: Ways
    made_of: Ways
    state: Ways
    counts: tuple[Ways, Ways, Ways]
    results: tuple[Ways, ...]
    line_id: Ways
    vector: Ways
    errors: Ways
    refusal: Way = ()
    why: Ways = ()
    begun: tuple[str, ...] = ()
    file_folder: str = ""
    job_folder: str = ""
    mark: Callable[[str], str] = str

    def path(self, template: str, name: str) -> str:
        """A path with the name of a job or file in it."""
        return template.format(name.rpartition("/")[2])

    def read_file(self, answer: object) -> str:
        """What the uploaded file is called there."""
        return _name(_text(answer, self.file_id), self.file_folder)

    def read_job(self, answer: object) -> str:
        """What the job is called there."""
        return _name(_text(answer, self.job_id), self.job_folder)

    def find(self, answer: object, file_id: str) -> str:
        """The job in the list of jobs that was made of `file_id`; empty when there is none."""
        jobs = _first(answer, self.listed, list)
        mark = self.mark(file_id)
        found = (
            [job for job in jobs if mark in [_at(job, way) for way in self.made_of]] if isinstance(jobs, list) else []
        )
        return self.read_job(found[0]) if found else ""

    def status(self, answer: object) -> JobStatus:
        """What the job is doing."""
        state = _text(answer, self.state)
        phase = _PHASES.get(state.upper().rpartition("STATE_")[2].lower(), "running")
        if not state and _at(answer, ("done",)) is True:
            phase = "failed" if _at(answer, ("error",)) is not None else "completed"
        elif not state and all(_at(answer, (name,)) is None for name in self.begun):
            raise Malformed("a job without a state")
        done, failed, total = (_count(answer, ways) for ways in self.counts)
        files = [_text(answer, ways) for ways in self.results]
        names = tuple(_name(name, self.file_folder) for name in files if name)
        return JobStatus(phase, done, failed, total, names, _text(answer, self.why) or _failure(answer))

    def read_line(self, line: Mapping[str, object]) -> ResultLine:
        """What one line of a result file says."""
        text_id = _text(line, self.line_id)
        error = next(filter(None, (_failure(_at(line, way)) for way in self.errors)), "")
        status = _at(line, self.refusal)
        if not error and isinstance(status, int) and status >= _BAD:
            error = f"refused with {status}"
        vector = None if error else next(filter(None, (_at(line, way) for way in self.vector)), None)
        return ResultLine(text_id, vector, error or ("" if vector else "no vector came back"))


def multipart(path: str, subtype: str, parts: Sequence[tuple[str, bytes]]) -> Upload:
    """The upload of `parts` (headers, content), of which the last is the file."""
    boundary = f"memory-tui-{hashlib.sha256(parts[-1][1]).hexdigest()}"
    pieces = [f"--{boundary}\r\n{headers}\r\n\r\n".encode() + content for headers, content in parts]
    content = b"\r\n".join([*pieces, f"--{boundary}--\r\n".encode()])
    return Upload(path, f"multipart/{subtype}; boundary={boundary}", content)


def _at(tree: object, way: Way) -> object:
    """What stands at `way` below `tree`; None where nothing does."""
    for step in way:
        if isinstance(step, int):
            tree = tree[step] if isinstance(tree, list) and len(tree) > step else None
        else:
            tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _first(tree: object, ways: Ways, kind: type) -> object:
    return next((found for way in ways if isinstance(found := _at(tree, way), kind) and found), None)


def _text(tree: object, ways: Ways) -> str:
    found = _first(tree, ways, str)
    return found if isinstance(found, str) else ""


def _count(tree: object, ways: Ways) -> int:
    """The count at one of `ways`, as a number or in digits; 0 where there is none."""
    for value in (_at(tree, way) for way in ways):
        if isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return max(0, value)
    return 0


def _name(value: str, folder: str) -> str:
    """`value`, a name that goes into a path, perhaps below `folder`. Raises Malformed for what could lead elsewhere."""
    if not _ID.fullmatch(value.removeprefix(folder)):
        raise Malformed("a name that is none")
    return value


def _failure(tree: object) -> str:
    """What an `error` below `tree` says: its message, else that it is there at all; empty without one."""
    error = _at(tree, ("error",))
    return "" if not error else error if isinstance(error, str) else _text(error, (("message",),)) or "refused"
