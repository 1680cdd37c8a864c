"""Which session a request belongs to, as a pure decision."""

from typing import Any

import pytest
from mcp_types import CLIENT_INFO_META_KEY

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.server.session_keys import LONGEST_NAME, NameTooLong, default_key, named_key, pinned_name
from emceepee.state.session_key import KeyKind, SessionKey


def calling(name: Any) -> dict[str, Any]:
    return {"name": "list_servers", "_meta": {CLIENT_INFO_META_KEY: {"name": name, "version": "1"}}}


def default(name: Any, identity: CallerIdentity | None = None) -> SessionKey | None:
    return default_key(identity or CallerIdentity(), calling(name))


@pytest.mark.parametrize(
    ("headers", "query", "name"),
    [
        ({}, b"", ""),
        ({b"emceepee-session": b"desk"}, b"", "desk"),
        ({b"emceepee-session": b" my desk\t"}, b"", "my desk"),
        ({}, b"session=my%20desk", "my desk"),
        ({}, b"a=b&session=my+desk&c", "my desk"),
        ({b"emceepee-session": b"header"}, b"session=address", "header"),
        ({b"emceepee-session": b" "}, b"session=address", "address"),
        ({b"emceepee-session": "Zoë".encode()}, b"", "Zoë"),
        ({b"emceepee-session": "Zoë".encode("latin-1")}, b"", "Zoë"),
        ({}, b"session=Zo%C3%AB", "Zoë"),
        ({}, b"session=&session", ""),
        ({}, b"\xff&=;%", ""),
    ],
)
def test_a_session_name_comes_from_the_header_or_else_from_the_query(
    headers: dict[bytes, bytes], query: bytes, name: str
) -> None:
    assert pinned_name(headers, query) == name


def test_a_session_name_belongs_to_its_principal_and_has_a_length_limit() -> None:
    assert named_key("ada", "desk") == SessionKey("ada", KeyKind.NAME, "desk")
    assert named_key("ada", "x" * LONGEST_NAME)
    with pytest.raises(NameTooLong, match=r"201 characters, but the limit is 200"):
        named_key("ada", "x" * (LONGEST_NAME + 1))


@pytest.mark.parametrize(
    ("identity", "has_one"),
    [
        (CallerIdentity(), True),
        (CallerIdentity(is_remote=True), False),
        (CallerIdentity(is_page=True), False),
        (CallerIdentity("ada", is_proven=True), True),
        (CallerIdentity("ada", is_proven=True, is_remote=True), True),
        (CallerIdentity("ada", is_proven=True, is_page=True), True),
    ],
)
def test_an_authenticated_or_direct_caller_has_a_default_session(identity: CallerIdentity, has_one: bool) -> None:
    key = SessionKey(identity.principal, KeyKind.DEFAULT, "agent") if has_one else None
    assert default("agent", identity) == key


def test_each_program_of_each_principal_has_its_own_default_session_in_any_version() -> None:
    newer = {"_meta": {CLIENT_INFO_META_KEY: {"name": "agent", "version": "2"}}}
    assert default_key(CallerIdentity(), newer) == default("agent")
    others = [default("Agent"), default("agent "), default(""), default("agent", CallerIdentity("ada", is_proven=True))]
    assert len({default("agent"), *others}) == 5


@pytest.mark.parametrize(
    "params",
    [None, [], {}, {"_meta": {}}, {"_meta": {CLIENT_INFO_META_KEY: "agent"}}, calling(None), calling(7), calling("")],
)
def test_programs_that_do_not_identify_themselves_share_one_default_session(params: Any) -> None:
    assert default_key(CallerIdentity(), params) == SessionKey("local", KeyKind.DEFAULT, "")


def test_a_long_program_name_is_shortened_and_stays_distinct_from_others() -> None:
    keys = [default("x" * length) for length in (LONGEST_NAME, LONGEST_NAME + 1, 1_000_000)]
    keys.append(default("x" * LONGEST_NAME + "\ud800"))
    assert len(set(keys)) == 4
    assert all(key is not None and len(key.value) <= LONGEST_NAME for key in keys)
