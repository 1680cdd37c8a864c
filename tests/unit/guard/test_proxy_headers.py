"""Which requests show that a proxy passed them on."""

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
def test_a_header_that_proxies_add_tells_of_one(name: str) -> None:
    assert is_forwarded((*USUAL, name.encode()))


def test_a_client_that_speaks_to_us_itself_sends_none() -> None:
    assert not is_forwarded((*USUAL, b"origin", b"x-request-id", b"emceepee-session", b"mcp-session-id", b"x-api-key"))
