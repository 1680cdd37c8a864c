"""Which scopes are asked for."""

from emceepee.backends.oauth.metadata.scopes import (
    LOGINS_PER_CALL,
    can_login_help,
    join,
    parse_scopes,
    scopes_to_request,
    with_offline_access,
)


def test_the_challenge_decides() -> None:
    assert scopes_to_request(challenged=("a",), configured=None, offered=("b", "c")) == ("a",)


def test_without_a_challenge_all_that_the_server_offers_is_asked_for() -> None:
    assert scopes_to_request(challenged=None, configured=None, offered=("b", "c")) == ("b", "c")


def test_without_either_none_are_named() -> None:
    assert scopes_to_request(challenged=None, configured=None, offered=None) == ()


def test_configured_ones_stand_for_what_is_offered_and_beside_what_is_challenged() -> None:
    assert scopes_to_request(challenged=None, configured=("x",), offered=("b",)) == ("x",)
    assert scopes_to_request(challenged=("a",), configured=("x",), offered=("b",)) == ("x", "a")


def test_a_step_up_asks_for_what_was_asked_before_as_well() -> None:
    found = scopes_to_request(challenged=("write",), configured=None, offered=("b",), asked_before=("read", "write"))
    assert found == ("read", "write")


def test_offline_access_is_added_where_it_is_offered_and_others_are_named() -> None:
    assert with_offline_access(("a",), ("a", "offline_access")) == ("a", "offline_access")
    assert with_offline_access(("a",), ("a",)) == ("a",)
    assert with_offline_access(("a",), None) == ("a",)
    assert with_offline_access((), ("offline_access",)) == ()


def test_each_scope_is_named_once() -> None:
    assert parse_scopes("  b a  b ") == ("b", "a")
    assert join(("a", "b"), None, ("b", "c")) == ("a", "b", "c")


def test_a_server_that_wants_what_was_asked_for_already_is_not_asked_again() -> None:
    assert can_login_help(("write",), asked=("read",), logins=0)
    assert not can_login_help(("write",), asked=("read", "write"), logins=0)
    assert not can_login_help(None, asked=("read",), logins=0)


def test_a_server_that_always_wants_something_else_is_asked_a_few_times_per_call() -> None:
    allowed = [can_login_help((f"scope-{n}",), asked=("read",), logins=n) for n in range(LOGINS_PER_CALL + 2)]
    assert allowed == [True] * LOGINS_PER_CALL + [False, False]
