"""Which requests passed through a proxy."""

import pytest

from emceepee.guard.proxy_headers import is_forwarded

USUAL = (b"host", b"accept", b"user-agent", b"content-type", b"authorization", b"mcp-protocol-version", b"mcp-method")


@pytest.mark.parametrize(
    "name",
    [
        *("forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "x-cluster-client-ip", "fly-client-ip"),
        *("x-forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-anything-else"),
        *("x-original-forwarded-for", "x-original-host", "x-envoy-external-address", "x-azure-clientip"),
        *("cf-connecting-ip", "cf-ray", "cdn-loop", "fastly-client-ip", "x-amzn-trace-id", "tailscale-user-login"),
        *("x-some-vendors-client-ip", "ali-cdn-real-ip", "x-appengine-user-ip", "x-gateway-remote-addr"),
    ],
)
def test_a_proxy_header_marks_a_request_as_forwarded(name: str) -> None:
    assert is_forwarded((*USUAL, name.encode()))


def test_headers_of_a_direct_client_do_not_mark_a_request_as_forwarded() -> None:
    assert not is_forwarded((*USUAL, b"origin", b"x-request-id", b"emceepee-session", b"mcp-session-id", b"x-api-key"))
