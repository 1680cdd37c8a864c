"""WWW-Authenticate headers as servers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.backends.oauth.metadata.challenge import Challenge, Demand, DemandKind, demand_of, parse_challenges


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer", [("bearer", {})]),
        ('Bearer realm="a, b"', [("bearer", {"realm": "a, b"})]),
        (
            'Basic realm="x", Bearer scope="a b" , error=invalid_token, DPoP algs="ES256 PS256"',
            [
                ("basic", {"realm": "x"}),
                ("bearer", {"scope": "a b", "error": "invalid_token"}),
                ("dpop", {"algs": "ES256 PS256"}),
            ],
        ),
        ('Negotiate abc+/==, Bearer realm = "x"', [("negotiate", {}), ("bearer", {"realm": "x"})]),
        (r'Bearer error_description="a \"quoted\" \\ word"', [("bearer", {"error_description": r'a "quoted" \ word'})]),
        ('BEARER Scope="a"', [("bearer", {"scope": "a"})]),
        (", ,Bearer , ,Basic", [("bearer", {}), ("basic", {})]),
        ('Bearer error="x" error_description="y"', [("bearer", {"error": "x", "error_description": "y"})]),
        ('Bearer scope="first", scope="second"', [("bearer", {"scope": "first"})]),
        ('Basic realm="x", Bearer scope="never closed', [("basic", {"realm": "x"}), ("bearer", {})]),
        ("", []),
        ('="x"', []),
    ],
)
def test_each_challenge_is_parsed_with_its_own_parameters(
    header: str, expected: list[tuple[str, dict[str, str]]]
) -> None:
    assert parse_challenges([header]) == tuple(Challenge(*each) for each in expected)


def test_several_www_authenticate_headers_give_several_challenges() -> None:
    found = parse_challenges(['Bearer realm="x"', "DPoP"])
    assert [each.scheme for each in found] == ["bearer", "dpop"]


@given(st.lists(st.text(alphabet='Bearer ,="\\abc\t', max_size=60), max_size=3))
def test_any_www_authenticate_header_is_parsed_or_skipped(headers: list[str]) -> None:
    for challenge in parse_challenges(headers):
        assert challenge.scheme == challenge.scheme.lower()


def test_a_parameter_of_another_scheme_is_not_applied_to_the_bearer_challenge() -> None:
    """A parameter in the preceding challenge of another scheme does not apply to the bearer token."""
    found = demand_of(401, ['Custom resource_metadata="https://evil.example/", Bearer scope="read"'])
    assert found == Demand(scopes=("read",))


def test_a_401_without_a_challenge_still_counts_as_a_request_for_a_token() -> None:
    assert demand_of(401, []) == Demand()


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, ['Basic realm="x"']),
        (403, []),
        (403, ["Bearer"]),
        (403, ['Bearer error="access_denied"']),
        (404, ["Bearer"]),
        (200, ["Bearer"]),
    ],
)
def test_a_response_that_no_token_would_change_is_not_a_token_demand(status: int, headers: list[str]) -> None:
    assert demand_of(status, headers) is None


def test_a_403_with_insufficient_scope_demands_more_scopes() -> None:
    found = demand_of(
        403, ['Bearer error="insufficient_scope", scope="write admin write", resource_metadata="https://a/b"']
    )
    assert found == Demand(kind=DemandKind.SCOPES, scopes=("write", "admin"), resource_metadata="https://a/b")


def test_challenge_schemes_determine_the_accepted_token_types() -> None:
    assert demand_of(401, ["DPoP"]) == Demand(accepts_bearer=False, accepts_dpop=True)
    assert demand_of(401, ["Bearer, DPoP"]) == Demand(accepts_bearer=True, accepts_dpop=True)


def test_a_nonce_is_demanded_only_if_the_server_provides_one() -> None:
    header = ['DPoP error="use_dpop_nonce"']
    assert demand_of(401, header, nonce="n") == Demand(
        kind=DemandKind.NONCE, accepts_bearer=False, accepts_dpop=True, nonce="n"
    )
    assert demand_of(401, header) == Demand(accepts_bearer=False, accepts_dpop=True)
