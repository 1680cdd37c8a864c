import pytest

from emceepee.backends.http1.origin import Address, HttpOrigin, join, place_of

ADDRESSES = {
    "http://example.org": (HttpOrigin(False, "example.org", 80), "example.org", "/"),
    "HTTPS://Example.ORG/mcp": (HttpOrigin(True, "example.org", 443), "example.org", "/mcp"),
    "http://example.org:80/a?b=c#d": (HttpOrigin(False, "example.org", 80), "example.org", "/a?b=c"),
    "https://example.org:80/": (HttpOrigin(True, "example.org", 80), "example.org:80", "/"),
    "http://127.0.0.1:9001/mcp/": (HttpOrigin(False, "127.0.0.1", 9001), "127.0.0.1:9001", "/mcp/"),
    "http://[::1]:9001/x": (HttpOrigin(False, "::1", 9001), "[::1]:9001", "/x"),
    "http://[fe80::1%25eth0]/x": (HttpOrigin(False, "fe80::1%eth0", 80), "[fe80::1]", "/x"),
    "http://bücher.example/ä b?q=ü&r=%20": (
        HttpOrigin(False, "xn--bcher-kva.example", 80),
        "xn--bcher-kva.example",
        "/%C3%A4%20b?q=%C3%BC&r=%20",
    ),
    "http://example.org?key=a b": (HttpOrigin(False, "example.org", 80), "example.org", "/?key=a%20b"),
    "http://example.org/a\r\nx: y": (HttpOrigin(False, "example.org", 80), "example.org", "/ax:%20y"),
}


@pytest.mark.parametrize(("url", "parts"), ADDRESSES.items())
def test_a_url_is_split_into_origin_authority_and_target(url: str, parts: tuple[HttpOrigin, str, str]) -> None:
    address = Address.of(url)
    assert (address.origin, address.authority, address.target, address.credentials) == (*parts, None)
    assert address.origin.socket_path is None


UNIX = {
    "unix:///run/x.sock:/mcp": ("/run/x.sock", "/mcp"),
    "unix:///run/x.sock": ("/run/x.sock", "/"),
    "UNIX:///run/X y.sock:/a b?next=http://c/d": ("/run/X y.sock", "/a%20b?next=http://c/d"),
    "unix:///run/x.sock://elsewhere/mcp": ("/run/x.sock", "//elsewhere/mcp"),
}


@pytest.mark.parametrize(("url", "parts"), UNIX.items())
def test_a_unix_socket_url_is_split_into_socket_path_and_target(url: str, parts: tuple[str, str]) -> None:
    address = Address.of(url)
    assert (address.origin, address.target) == (HttpOrigin.of_socket(parts[0]), parts[1])
    assert (address.origin.socket_path, address.origin.is_tls) == (parts[0], False)
    assert (address.authority, address.credentials) == ("localhost", None)


@pytest.mark.parametrize(
    "url", ["unix://", "unix:///", "unix://x.sock:/mcp", "unix:///a\0b:/mcp", "unix:///" + "x" * 103]
)
def test_an_invalid_unix_socket_url_is_rejected_with_an_explanation(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected unix:///PATH|at most 103 bytes"):
        Address.of(url)


def test_a_negative_port_does_not_turn_a_url_into_a_socket_address() -> None:
    with pytest.raises(ValueError, match="Port"):
        Address.of("http://x:-1/")


@pytest.mark.parametrize(
    ("url", "location", "joined"),
    [
        ("http://a/b/c", "d", "http://a/b/d"),
        ("http://a/b", "//c/d", "http://c/d"),
        ("unix:///run/x.sock:/mcp", "/mcp/", "unix:///run/x.sock:/mcp/"),
        ("unix:///run/x.sock:/a/mcp", "b?c=d", "unix:///run/x.sock:/a/b?c=d"),
        ("unix:///run/x.sock:/mcp", "http://localhost/new", "unix:///run/x.sock:/new"),
        ("unix:///run/x.sock:/mcp", "http://elsewhere/new", "http://elsewhere/new"),
        ("unix:///run/x.sock:/mcp", "http://localhost:80/new", "http://localhost:80/new"),
        ("unix:///run/x.sock:/mcp", "unix:///run/y.sock:/mcp", "unix:///run/y.sock:/mcp"),
    ],
)
def test_a_location_is_resolved_against_the_url_of_its_server(url: str, location: str, joined: str) -> None:
    assert join(url, location) == joined


def test_an_address_is_displayed_without_password_and_path() -> None:
    assert place_of("https://u:p@example.org:8443/t0ken?k=v") == "example.org:8443"
    assert place_of("unix:///run/x.sock:/t0ken") == "/run/x.sock"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "http://",
        "http:///x",
        "http://a:b",
        "http://a:99999",
        "http://[::1",
        "http://a b/",
        "http://a\0b/",
    ],
)
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the words are urllib's in part
        Address.of(url)


def test_credentials_in_a_url_become_only_an_authorization_header() -> None:
    address = Address.of("http://us%40er:p%3Ass@example.org/x")
    assert address.credentials == "Basic dXNAZXI6cDpzcw=="
    assert address.authority == "example.org"


def test_the_path_of_an_address_excludes_the_query() -> None:
    assert Address.of("http://example.org/a/b?c=/d").path == "/a/b"
