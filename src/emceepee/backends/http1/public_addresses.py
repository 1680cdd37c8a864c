"""Distinguishes public internet addresses from addresses that only this machine or its network can reach."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

# Special ranges that some versions of the standard library classify as public.
_SPECIAL = [
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
        *("::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
        *("fc00::/7", "fec0::/10"),
    )
]
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")


def is_public(address: str) -> bool:
    """Return whether an address is public. An embedded IPv4 address decides for its IPv6 address.

    Text that is not an address is not public.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded_address(found) if isinstance(found, IPv6Address) else None
    if inner is not None:
        return _is_public(inner)
    return _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    return not any(address in network for network in _SPECIAL if network.version == address.version)


def _embedded_address(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if address in _MAPPED or address in _TRANSLATED:
        return IPv4Address(number & 0xFFFF_FFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFF_FFFF)
    return None
