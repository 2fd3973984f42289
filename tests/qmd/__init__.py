"""Tests of QMD as the backend."""
