"""Timestamps in a database: whole microseconds since 1970-01-01 UTC."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _UNIT


def moment_at(count: int) -> datetime:
    return _EPOCH + count * _UNIT
