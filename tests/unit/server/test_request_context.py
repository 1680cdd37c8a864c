"""What is known of who calls."""

from typing import Any

import pytest

from emceepee.server.request_context import CLIENT_INFO, SessionHandles, client_label
from support.installation import an_installation


@pytest.mark.parametrize(
    ("info", "label"),
    [
        ({"name": "claude-code", "version": "2.1.0"}, "claude-code 2.1.0"),
        ({"name": "claude-code"}, "claude-code"),
        ({"name": "x" * 200, "version": "1"}, "x" * 100),
        ({"name": "a\x1b[31m\nb\u202e", "version": "\x00"}, "a[31mb"),
        ({"name": " ", "version": ""}, None),
        ({"name": 5, "version": None}, None),
        ({}, None),
        ("text", None),
        (None, None),
    ],
)
def test_a_caller_is_called_by_its_own_name_and_version_in_either_era(info: Any, label: str | None) -> None:
    assert client_label({"clientInfo": info}) == label
    assert client_label({"_meta": {CLIENT_INFO: info}}) == label


@pytest.mark.parametrize("params", [None, [], "x", {}, {"_meta": None}, {"_meta": []}])
def test_a_caller_that_does_not_say_its_name_has_none(params: Any) -> None:
    assert client_label(params) is None


async def test_a_session_opened_by_a_call_bears_the_name_of_who_called() -> None:
    async with an_installation() as place:
        meta = {CLIENT_INFO: {"name": "agent", "version": "3"}}
        await SessionHandles(place.directory, "ada", {"name": "open_session", "_meta": meta}).open()
        assert [session.label for session in place.directory.sessions_of("ada")] == ["agent 3"]
