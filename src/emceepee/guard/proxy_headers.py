"""Detects requests that came through a proxy, by their headers."""

from functools import lru_cache

# Headers that proxies, load balancers, tunnels, and CDNs add. MCP clients never send them.
FORWARDING_PREFIXES = (b"x-forwarded", b"x-original-", b"x-envoy-", b"x-azure-", b"x-appengine-", b"cf-", b"fastly-")
FORWARDING_SUFFIXES = (b"-ip", b"-remote-addr", b"-forwarded-for", b"-ip-address")
FORWARDING_HEADERS = frozenset(
    {
        *(b"forwarded", b"forwarded-for", b"via", b"cdn-loop", b"x-proxy-id", b"x-amz-cf-id", b"x-amzn-trace-id"),
        *(b"x-real-ip", b"x-client-ip", b"x-remote-ip", b"x-remote-addr", b"x-cluster-client-ip", b"x-proxyuser-ip"),
        *(b"client-ip", b"true-client-ip", b"proxy-client-ip", b"wl-proxy-client-ip", b"fly-client-ip"),
        *(b"x-nf-client-connection-ip", b"x-vercel-forwarded-for", b"tailscale-user-login"),
    }
)


@lru_cache(maxsize=64)  # callers send the same headers in every request
def is_forwarded(names: tuple[bytes, ...]) -> bool:
    """Return whether a proxy added any of these headers. The names are in lower case."""
    return any(
        name in FORWARDING_HEADERS or name.startswith(FORWARDING_PREFIXES) or name.endswith(FORWARDING_SUFFIXES)
        for name in names
    )
