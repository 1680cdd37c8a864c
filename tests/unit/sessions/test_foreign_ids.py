"""Ids that belong to another session."""

from datetime import UTC, datetime, timedelta

import pytest

from emceepee.clock import milliseconds
from emceepee.ids import Ulids, milliseconds_of
from emceepee.sessions.foreign_ids import why_foreign
from emceepee.sessions.records import SessionProfile

OPENED = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def made_at(moment: datetime) -> str:
    return Ulids(lambda: milliseconds(moment)).new()


@pytest.mark.parametrize(
    ("transport", "way"), [("stdio", "--attach auto --session NAME"), ("http", "?session=NAME to the URL")]
)
def test_an_id_older_than_the_session_explains_how_to_keep_a_session(transport: str, way: str) -> None:
    profile = SessionProfile(secret="x", opened_at=OPENED, transport=transport)
    words = why_foreign(made_at(OPENED - timedelta(milliseconds=1)), profile)
    assert words is not None
    assert words.startswith("It is older than this session and belongs to another one.")
    assert way in words


def test_an_id_that_is_not_older_than_the_session_may_belong_to_it() -> None:
    profile = SessionProfile(secret="x", opened_at=OPENED)
    ids = [made_at(OPENED), made_at(OPENED + timedelta(hours=1)), "nothing", "", "U" * 26, "0" * 27]
    assert [why_foreign(item_id, profile) for item_id in ids] == [None] * len(ids)


def test_the_timestamp_of_an_id_is_its_creation_time() -> None:
    assert milliseconds_of(made_at(OPENED)) == milliseconds(OPENED)
