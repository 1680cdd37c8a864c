"""Tuning the allocator is safe with any allocator."""

import ctypes

import pytest

from emceepee.cli.serve.process_setup import keep_freed_memory


def test_the_allocator_accepts_the_memory_settings() -> None:
    keep_freed_memory()
    assert bytes(16 << 20).count(0) == 16 << 20


def test_an_unknown_allocator_is_left_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    keep_freed_memory()
