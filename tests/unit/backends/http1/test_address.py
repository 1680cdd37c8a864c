import pytest

from emceepee.backends.http1.address import Address, Origin

ADDRESSES = {
    "http://example.org": (Origin(False, "example.org", 80), "example.org", "/"),
    "HTTPS://Example.ORG/mcp": (Origin(True, "example.org", 443), "example.org", "/mcp"),
    "http://example.org:80/a?b=c#d": (Origin(False, "example.org", 80), "example.org", "/a?b=c"),
    "https://example.org:80/": (Origin(True, "example.org", 80), "example.org:80", "/"),
    "http://127.0.0.1:9001/mcp/": (Origin(False, "127.0.0.1", 9001), "127.0.0.1:9001", "/mcp/"),
    "http://[::1]:9001/x": (Origin(False, "::1", 9001), "[::1]:9001", "/x"),
    "http://[fe80::1%25eth0]/x": (Origin(False, "fe80::1%eth0", 80), "[fe80::1]", "/x"),
    "http://bücher.example/ä b?q=ü&r=%20": (
        Origin(False, "xn--bcher-kva.example", 80),
        "xn--bcher-kva.example",
        "/%C3%A4%20b?q=%C3%BC&r=%20",
    ),
    "http://example.org?key=a b": (Origin(False, "example.org", 80), "example.org", "/?key=a%20b"),
    "http://example.org/a\r\nx: y": (Origin(False, "example.org", 80), "example.org", "/ax:%20y"),
}


@pytest.mark.parametrize(("url", "parts"), ADDRESSES.items())
def test_an_address_is_taken_apart(url: str, parts: tuple[Origin, str, str]) -> None:
    address = Address.of(url)
    assert (address.origin, address.authority, address.target, address.credentials) == (*parts, None)
    assert address.origin.socket_path is None


def test_a_unix_socket_is_an_origin_to_which_no_url_leads() -> None:
    origin = Origin.of_socket("/run/hop")
    assert (origin.is_tls, origin.socket_path) == (False, "/run/hop")
    with pytest.raises(ValueError, match="Port"):
        Address.of("http://x:-1/")


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
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the words are urllib's in part
        Address.of(url)


def test_credentials_in_an_address_become_a_header_and_nothing_else() -> None:
    address = Address.of("http://us%40er:p%3Ass@example.org/x")
    assert address.credentials == "Basic dXNAZXI6cDpzcw=="
    assert address.authority == "example.org"


def test_the_path_is_without_the_query() -> None:
    assert Address.of("http://example.org/a/b?c=/d").path == "/a/b"
