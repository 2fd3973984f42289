"""Where the checkout, its tests and the data beside it stand."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared" / "data"
"""Recorded answers, labelled questions and a model; tests that need them skip where they are absent."""
MODEL = SHARED / "models" / "all-MiniLM-L6-v2-q8_0.gguf"
