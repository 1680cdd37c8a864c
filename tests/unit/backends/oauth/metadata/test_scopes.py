"""Which scopes are requested."""

from emceepee.backends.oauth.metadata.scopes import (
    LOGINS_PER_CALL,
    can_login_help,
    join,
    parse_scopes,
    scopes_to_request,
    with_offline_access,
)


def test_scopes_from_the_challenge_take_precedence_over_offered_scopes() -> None:
    assert scopes_to_request(challenged=("a",), configured=None, offered=("b", "c")) == ("a",)


def test_without_a_challenge_all_offered_scopes_are_requested() -> None:
    assert scopes_to_request(challenged=None, configured=None, offered=("b", "c")) == ("b", "c")


def test_without_challenged_or_offered_scopes_none_are_requested() -> None:
    assert scopes_to_request(challenged=None, configured=None, offered=None) == ()


def test_configured_scopes_replace_offered_ones_and_are_added_to_challenged_ones() -> None:
    assert scopes_to_request(challenged=None, configured=("x",), offered=("b",)) == ("x",)
    assert scopes_to_request(challenged=("a",), configured=("x",), offered=("b",)) == ("x", "a")


def test_a_scope_step_up_requests_earlier_scopes_as_well() -> None:
    found = scopes_to_request(challenged=("write",), configured=None, offered=("b",), asked_before=("read", "write"))
    assert found == ("read", "write")


def test_offline_access_is_requested_only_if_offered_and_other_scopes_are_named() -> None:
    assert with_offline_access(("a",), ("a", "offline_access")) == ("a", "offline_access")
    assert with_offline_access(("a",), ("a",)) == ("a",)
    assert with_offline_access(("a",), None) == ("a",)
    assert with_offline_access((), ("offline_access",)) == ()


def test_each_scope_is_requested_once() -> None:
    assert parse_scopes("  b a  b ") == ("b", "a")
    assert join(("a", "b"), None, ("b", "c")) == ("a", "b", "c")


def test_a_login_is_not_repeated_for_scopes_that_were_already_requested() -> None:
    assert can_login_help(("write",), asked=("read",), logins=0)
    assert not can_login_help(("write",), asked=("read", "write"), logins=0)
    assert not can_login_help(None, asked=("read",), logins=0)


def test_a_server_that_always_demands_new_scopes_causes_a_bounded_number_of_logins_per_call() -> None:
    allowed = [can_login_help((f"scope-{n}",), asked=("read",), logins=n) for n in range(LOGINS_PER_CALL + 2)]
    assert allowed == [True] * LOGINS_PER_CALL + [False, False]
