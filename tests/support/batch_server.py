"""The batch services of OpenAI, Voyage and Gemini on loopback: files, jobs that go through states, and result files."""

import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from typing import Any

from tests.support.provider_server import Asked, Handler, Play, Reply, vector

RUNNING = ("validating", "in_progress", "finalizing", "cancelling", "PENDING", "RUNNING")


@dataclass
class Made:
    """A job as the server knows it."""

    id: str
    file: str
    body: dict[str, Any]
    states: deque[str]
    state: str = "validating"
    output: str = ""
    errors: str = ""


Lines = list[Any]


@dataclass
class BatchPlay(Play):
    """`states` is what a new job goes through, the last of them for ever; `change` makes of good result lines what the
    output file and the error file hold. `faults` are answered first, by method and first word of the path.
    """

    states: tuple[str, ...] = ("completed",)
    change: Callable[[Lines], tuple[Lines, Lines]] = lambda lines: (lines, [])
    faults: dict[str, deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    redirect: bool = False
    forms: list[Message] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    jobs: list[Made] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    headers: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def fail(self, call: str, *replies: Reply) -> None:
        """Answer the next `call`, such as "POST /files", with `replies`."""
        self.faults[call].extend(replies)

    def count(self, call: str) -> int:
        return self.log.count(call)

    def requests(self, at: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.sent[self.jobs[at].file].split("\n")]


def text_of(request: dict[str, Any]) -> str:
    return request["body"]["input"] if "body" in request else request["request"]["content"]["parts"][0]["text"]


def id_of(line: dict[str, Any]) -> str:
    return line.get("custom_id") or line["key"]


def answered(request: dict[str, Any]) -> dict[str, Any]:
    if "key" in request:
        return {"key": request["key"], "response": {"embedding": {"values": vector(text_of(request))}}}
    body = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": vector(text_of(request))}]}
    response = {"status_code": 200, "request_id": "q", "body": body}
    return {"id": "r", "custom_id": request["custom_id"], "error": None, "response": response}


def refused(line: dict[str, Any], message: str = "too long") -> dict[str, Any]:
    """The result line of the same request when it went wrong."""
    if "key" in line:
        return {"key": line["key"], "error": {"code": 3, "message": message}}
    response = {"status_code": 400, "body": {"error": {"message": message}}}
    return {"custom_id": line["custom_id"], "error": None, "response": response}


class BatchHandler(Handler):
    """Everything else is a direct request."""

    play: BatchPlay

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        self._serve("GET", b"")

    def do_DELETE(self) -> None:  # noqa: N802 - the same
        self._serve("DELETE", b"")

    def do_POST(self) -> None:  # noqa: N802 - the same
        if any(self.path.endswith(end) for end in ("/embeddings", ":batchEmbedContents", ":embedContent")):
            super().do_POST()
        else:
            self._serve("POST", self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _serve(self, method: str, body: bytes) -> None:
        play, path = self.play, self.path.partition("?")[0]
        call = f"{method} {_word(path)}"
        with play.lock:
            play.log.append(call)
            play.headers.append((call, dict(self.headers)))
            fault = play.faults[call].popleft() if play.faults[call] else None
        if fault is not None:
            fault(self, Asked(self.path, dict(self.headers), None, len(body)))
            return
        with play.lock:
            code, answer = self._answer(call, path, body)
        if isinstance(answer, str):
            self.raw(code, answer.encode(), {"Content-Type": "application/jsonl"})
        else:
            self.json(code, answer, {"Location": answer["to"]} if code == 302 else None)

    def _answer(self, call: str, path: str, body: bytes) -> tuple[int, Any]:
        play, last = self.play, path.rpartition("/")[2]
        match call:
            case "POST /files":
                return 200, self._file(path, body)
            case "POST /batches" if "/cancel" in path or ":cancel" in path:
                name = path.removesuffix("/cancel").removesuffix(":cancel").rpartition("/")[2]
                play.cancelled.append(name)
                return 200, {}
            case "POST /batches":
                return self._create(json.loads(body))
            case "GET /batches" if last == "batches":
                jobs = [*reversed(play.jobs)]
                return 200, {"data": [*map(shown, jobs)], "operations": [*map(shown_gemini, jobs)]}
            case "GET /batches":
                return self._look(last)
            case "GET /files":
                name = path.split("/files/")[1].removesuffix("/content").removesuffix(":download")
                if play.redirect:
                    return 302, {"to": f"{play.url}/stored/{name}"}
                return (200, play.files[name]) if name in play.files else (404, {"error": {"message": "no such file"}})
            case "DELETE /files":
                return (200, {"deleted": True}) if play.files.pop(last, None) is not None else (404, {})
            case "GET /stored":
                return 200, play.files[last]
        return 404, {"error": {"message": f"unknown path {path}"}}

    def _file(self, path: str, body: bytes) -> Any:
        play = self.play
        form = message_from_bytes(b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body)
        play.forms.append(form)
        name = f"in-{len(play.sent)}"
        play.files[name] = play.sent[name] = form.get_payload()[1].get_payload(decode=True).decode()
        return {"file": {"name": f"files/{name}"}} if "/upload/" in path else {"id": name, "object": "file"}

    def _create(self, body: dict[str, Any]) -> tuple[int, Any]:
        play = self.play
        gemini = "batch" in body
        file = body["batch"]["inputConfig"]["file_name"].removeprefix("files/") if gemini else body["input_file_id"]
        if file not in play.files:
            return 404, {"error": {"message": "no such file"}}
        play.jobs.append(Made(f"job_{len(play.jobs)}", file, body, deque(play.states)))
        return 200, shown_gemini(play.jobs[-1]) if gemini else shown(play.jobs[-1])

    def _look(self, name: str) -> tuple[int, Any]:
        job = next((job for job in self.play.jobs if job.id == name), None)
        if job is None:
            return 404, {"error": {"message": "No such batch"}}
        job.state = job.states.popleft() if len(job.states) > 1 else job.states[0]
        if job.state not in RUNNING and not job.output and "failed" not in job.state.lower():
            good, bad = self.play.change([answered(json.loads(line)) for line in self.play.files[job.file].split("\n")])
            job.output, job.errors = f"out-{name}", f"err-{name}" if bad else ""
            for file, lines in ((job.output, good), (job.errors, bad)):
                self.play.files[file] = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        return 200, shown_gemini(job) if "batch" in job.body else shown(job)


def _word(path: str) -> str:
    if path.endswith(":asyncBatchEmbedContent"):
        return "/batches"
    return next((f"/{word}" for word in ("batches", "files", "stored") if f"/{word}" in path), path)


def shown(job: Made) -> dict[str, Any]:
    """A job as OpenAI and Voyage tell it."""
    errors = {"data": [{"message": "the input file is wrong"}]} if job.state == "failed" else None
    files = {"input_file_id": job.file, "output_file_id": job.output or None, "error_file_id": job.errors or None}
    counts = {"total": 7, "completed": 5, "failed": 1}
    return {"id": job.id, "object": "batch", "status": job.state, "errors": errors, **files, "request_counts": counts}


def shown_gemini(job: Made) -> dict[str, Any]:
    """A job as Gemini tells it."""
    state = {"completed": "SUCCEEDED", "validating": "PENDING", "in_progress": "RUNNING"}.get(job.state, job.state)
    told: dict[str, Any] = {
        "name": f"batches/{job.id}",
        "metadata": {
            "state": f"BATCH_STATE_{state.upper()}",
            "displayName": job.body.get("batch", {}).get("displayName"),
            "batchStats": {"requestCount": "7", "successfulRequestCount": "5"},
        },
    }
    if job.output:
        told["metadata"]["output"] = {"responsesFile": f"files/{job.output}"}
    if job.state == "failed":
        told["error"] = {"message": "the input file is wrong"}
    return told
