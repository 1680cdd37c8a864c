import logging
from pathlib import Path

import pytest

from emceepee.sessions.lists.entry_search import NO_VECTORS, SharedVectors


def test_without_a_vectors_file_search_has_no_vectors() -> None:
    assert NO_VECTORS.get() is None


def test_an_unusable_vectors_file_is_logged_once_and_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "vectors.npz"
    file.write_bytes(b"nothing of the kind")
    shared = SharedVectors(file)
    with caplog.at_level(logging.WARNING):
        assert (shared.get(), shared.get()) == (None, None)
    assert sum("search_vectors_not_used" in record.getMessage() for record in caplog.records) == 1
