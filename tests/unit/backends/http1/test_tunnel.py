import pytest

from emceepee.backends.http1.http_failures import NotConnected
from emceepee.backends.http1.proxies import Proxy
from emceepee.backends.http1.tunnel import TunnelRefused, check_answer

PROXY = Proxy.of("http://proxy.example:3128", "HTTPS_PROXY")
PROVEN = Proxy.of("http://ada:s3cret@proxy.example:3128", "HTTPS_PROXY")


def refusal(head: bytes, proxy: Proxy = PROXY) -> str:
    with pytest.raises(NotConnected) as refused:
        check_answer(head, proxy, "mcp.example:443")
    assert "s3cret" not in str(refused.value)
    assert "proxy.example:3128" in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nvia: x\r\n\r\n",
        b"HTTP/1.1 204\r\n\r\n",
    ],
)
def test_any_success_status_opens_the_tunnel(head: bytes) -> None:
    check_answer(head, PROXY, "mcp.example:443")


def test_a_missing_proxy_password_is_distinguished_from_a_wrong_one() -> None:
    head = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n<html>"
    wants = "wants a password, in HTTPS_PROXY (HTTP 407 Proxy Authentication Required); write http://USER:PASSWORD@"
    assert wants in refusal(head)
    assert "does not accept the password in HTTPS_PROXY" in refusal(head, PROVEN)
    assert "does not accept the password in HTTPS_PROXY" in refusal(b"HTTP/1.0 401 Unauthorized\r\n\r\n", PROVEN)


def test_a_proxy_that_forbids_a_server_is_reported_with_a_hint_about_the_no_proxy_variable() -> None:
    words = refusal(b"HTTP/1.1 403 Filtered\r\n\r\n")
    assert "does not allow connections to mcp.example:443 (HTTP 403 Filtered)" in words
    assert "NO_PROXY" in words


def test_a_proxy_that_cannot_connect_is_quoted_in_the_error() -> None:
    with pytest.raises(TunnelRefused, match=r"cannot connect to mcp.example:443 \(HTTP 502 Bad  Gateway\)") as refused:
        check_answer(b"HTTP/1.1 502 Bad \x07Gateway\r\n\r\n", PROXY, "mcp.example:443")
    assert refused.value.status == 502


@pytest.mark.parametrize(
    "head",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n",  # without the end of the head
        b"HTTP/1.1 200 OK\r\n\r\nmore than was asked for",
        b"\x15\x03\x01\x00\x02\x02\x16\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
    ],
)
def test_a_proxy_response_that_is_not_http_is_reported_with_the_variable_to_check(head: bytes) -> None:
    assert "an answer that is not HTTP; HTTPS_PROXY must name an HTTP proxy" in refusal(head)


def test_a_proxy_that_closes_the_connection_is_named_in_the_error() -> None:
    assert "ended the connection without an answer" in refusal(b"")
