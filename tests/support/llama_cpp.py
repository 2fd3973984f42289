"""The real llama-cpp-python: PyPI has its source alone, so it is compiled once for all runs into the cache folder.

`python -m tests.support.llama_cpp` compiles it, for minutes, and says how long it took. No test does.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.npm import CACHE

VERSION = "0.3.36"
_COMPILE_SECONDS = 2400
_CMAKE = (
    "-DLLAVA_BUILD=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF -DGGML_NATIVE=OFF"
)
"""Without what its Python part does not need, and for any processor of this kind: its code for AMX ends the process."""
_PLACE = CACHE / f"llama-cpp-python-{VERSION}-{sys.implementation.cache_tag}-{zlib.crc32(_CMAKE.encode()):08x}"
_DONE = "whole"


@contextmanager
def importable() -> Iterator[None]:
    """In here, and in processes started in here, llama_cpp and its server can be imported. Skips, with the reason."""
    if importlib.util.find_spec("llama_cpp") is not None:
        yield
        return
    if not (_PLACE / _DONE).is_file():
        reason = _hindrance() or "python -m tests.support.llama_cpp compiles it"
        pytest.skip(f"llama-cpp-python {VERSION} is not compiled here: {reason}")
    with pytest.MonkeyPatch.context() as patch:
        # The last place here: what the tests run with stays what it is.
        patch.setattr(sys, "path", [*sys.path, str(_PLACE / "site")])
        patch.setenv("PYTHONPATH", str(_PLACE / "site"))
        importlib.invalidate_caches()
        yield


def _hindrance() -> str:
    """What it cannot be compiled without; empty where there is all of it."""
    if shutil.which("uv") is None:
        return "there is no uv"
    compilers = [name for name in ("c++", "g++", "clang++") if shutil.which(name)]
    return "" if compilers else "there is no C++ compiler"


def compiled() -> str:
    """Compile it where it is not there yet; returns a sentence about it."""
    if reason := _hindrance():
        return f"not compiled, {reason}"
    _PLACE.mkdir(parents=True, exist_ok=True)
    with (_PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (_PLACE / _DONE).is_file():
            return f"{_PLACE} ({(_PLACE / _DONE).read_text()})"
        site, began, spent = _PLACE / "site", time.monotonic(), _cpu()
        shutil.rmtree(site, ignore_errors=True)
        # Without this checkout's configuration, which leaves it out.
        flags = ["--quiet", "--no-config", "--python", sys.executable, "--target", str(site)]
        try:
            run = subprocess.run(
                ["uv", "pip", "install", *flags, f"llama-cpp-python[server]=={VERSION}"],
                check=False,
                capture_output=True,
                text=True,
                timeout=_COMPILE_SECONDS,
                cwd=_PLACE,
                env={**os.environ, "CMAKE_ARGS": _CMAKE},
            )
        except subprocess.TimeoutExpired:
            return f"not compiled, it took more than {_COMPILE_SECONDS} seconds"
        if run.returncode != 0 or not (site / "llama_cpp").is_dir():
            return f"not compiled: {' '.join(run.stderr.split())[-300:]}"
        took = f"compiled in {time.monotonic() - began:.0f} s, {_cpu() - spent:.0f} s of CPU"
        (_PLACE / _DONE).write_text(took)
        return f"{_PLACE} ({took})"


def _cpu() -> float:
    used = os.times()
    return used.children_user + used.children_system


if __name__ == "__main__":
    print(f"llama-cpp-python {VERSION}: {compiled()}", flush=True)
