"""One thread for small products: more would wait for each other longer than they multiply."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module

_lock = threading.Lock()


@cache
def _openblas() -> ctypes.CDLL | None:
    """The OpenBLAS that numpy brings; None where it multiplies by another library."""
    found = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    return found if hasattr(found, "scipy_openblas_set_num_threads64_") else None


@contextmanager
def one_thread() -> Iterator[None]:
    """Multiply by one thread while inside: where a program imported numpy first, OPENBLAS_NUM_THREADS came too late."""
    library = _openblas()
    if library is None:
        yield
        return
    with _lock:
        threads = library.scipy_openblas_get_num_threads64_()
        library.scipy_openblas_set_num_threads64_(1)
        try:
            yield
        finally:
            library.scipy_openblas_set_num_threads64_(threads)
