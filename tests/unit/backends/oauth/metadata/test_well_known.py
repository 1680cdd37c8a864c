"""The addresses of metadata documents. Where the SDK has the same function, both must agree."""

import pytest
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    is_valid_client_metadata_url,
    issuers_match,
)
from mcp.shared.auth_utils import check_resource_allowed

from emceepee.backends.oauth.metadata.well_known import (
    canonical_resource,
    covers,
    is_client_metadata_url,
    is_openable,
    is_trustworthy,
    resource_metadata_urls,
    same_issuer,
    server_metadata_urls,
)


@pytest.mark.parametrize(
    "url", ["https://a.example", "https://a.example/", "https://a.example:8443/x/mcp", "http://h/m"]
)
@pytest.mark.parametrize("named", [None, "https://a.example/named.json"])
def test_resource_metadata_urls_match_those_of_the_sdk(url: str, named: str | None) -> None:
    assert list(resource_metadata_urls(url, named)) == build_protected_resource_metadata_discovery_urls(named, url)


@pytest.mark.parametrize("issuer", ["https://a.example", "https://a.example/", "https://a.example/t", "https://a/t/u/"])
def test_authorization_server_metadata_urls_match_those_of_the_sdk(issuer: str) -> None:
    expected = build_oauth_authorization_server_metadata_discovery_urls(issuer, "https://unused.example")
    assert list(server_metadata_urls(issuer)) == expected


@pytest.mark.parametrize(
    ("document", "asked"),
    [
        ("https://a", "https://a"),
        ("https://a/", "https://a"),
        ("https://a", "https://a/"),
        ("https://a/t/", "https://a/t"),
        ("https://A", "https://a"),
        ("https://a.evil", "https://a"),
        ("https://a//", "https://a/"),
    ],
)
def test_issuers_are_compared_character_by_character(document: str, asked: str) -> None:
    assert same_issuer(document, asked) is issuers_match(document, asked)


@pytest.mark.parametrize(
    "resource",
    [
        "https://a.example/x/mcp",
        "https://a.example/x/mcp/",
        "https://a.example/x",
        "https://a.example",
        "https://A.example/x",
        "https://a.example/x/m",
        "https://a.example/x/mcp/deeper",
        "https://evil.example/x/mcp",
        "http://a.example/x/mcp",
        "nonsense",
    ],
)
def test_resource_metadata_is_accepted_only_for_its_own_server(resource: str) -> None:
    url = "https://a.example/x/mcp"
    assert covers(resource, url) is check_resource_allowed(url, resource)


def test_a_default_port_does_not_change_the_origin_of_a_resource() -> None:
    assert covers("https://a.example:443/x", "https://a.example/x")


@pytest.mark.parametrize(
    "url",
    [
        "https://a/c.json",
        "https://a",
        "https://a/",
        "http://a/c.json",
        "https:///c.json",
        "nonsense",
        "https://u:p@a/c",
    ],
)
def test_a_client_metadata_url_has_https_and_a_path(url: str) -> None:
    is_ours = is_client_metadata_url(url)
    assert not is_ours or is_valid_client_metadata_url(url)
    assert is_ours is (url == "https://a/c.json")


@pytest.mark.parametrize(
    ("url", "server", "expected"),
    [
        ("https://a/x", "https://b/mcp", True),
        ("https://a/x", "http://b/mcp", True),
        ("http://a/x", "https://b/mcp", False),
        ("http://a/x", "http://b/mcp", True),
        ("javascript:alert(1)", "http://b/mcp", False),
        ("https://user@a/x", "https://b/mcp", False),
        ("https://a/x\n", "https://b/mcp", False),
        ("https://a/" + "x" * 9000, "https://b/mcp", False),
        ("file:///etc/passwd", "http://b/mcp", False),
        ("unix:///run/docker.sock:/v1.43/containers/create", "http://b/mcp", False),
        ("UNIX:///run/docker.sock:/x", "http://b/mcp", False),
        ("unix:///run/docker.sock:/x", "unix:///run/docker.sock:/mcp", False),
        ("https://a/x", "unix:///run/mcp.sock:/mcp", True),
        ("https://evil.example\\.a/x", "https://b/mcp", False),
    ],
)
def test_a_server_with_tls_never_leads_to_metadata_without_tls(url: str, server: str, expected: bool) -> None:
    assert is_trustworthy(url, server) is expected


@pytest.mark.parametrize(
    ("url", "server", "expected"),
    [
        ("https://a/login", "http://b/mcp", True),
        ("http://127.0.0.1:9000/login", "http://b/mcp", True),
        ("http://[::1]/login", "http://b/mcp", True),
        ("http://localhost/login", "http://b/mcp", True),
        ("http://b:9000/login", "http://b/mcp", True),
        ("http://a/login", "http://b/mcp", False),
        ("http://127.0.0.1.evil.example/login", "http://b/mcp", False),
        ("http://127.0.0.1/login", "https://b/mcp", False),
        ("javascript:alert(1)", "http://b/mcp", False),
        ("file:///etc/passwd", "http://b/mcp", False),
        ("unix:///run/docker.sock:/x", "http://b/mcp", False),
    ],
)
def test_a_login_page_must_use_tls_or_be_on_this_machine(url: str, server: str, expected: bool) -> None:
    assert is_openable(url, server) is expected


def test_a_canonical_resource_has_no_fragment_and_no_password() -> None:
    assert canonical_resource("HTTPS://me:secret@A.example/mcp?tenant=1#x") == "https://a.example/mcp?tenant=1"


@pytest.mark.parametrize("host", ["l\u043egin.example", "login.example%2eevil.example", "login.example%E3%80%82evil"])
def test_a_login_page_is_refused_if_browsers_may_parse_its_host_differently(host: str) -> None:
    """The question names the host, so the browser has to open exactly that host."""
    assert not is_openable(f"https://{host}/authorize", "https://mcp.example/mcp")
