import socket
from typing import Any

import pytest

from emceepee.backends.http1.resolver import SocketAddress
from emceepee.backends.spec import HttpTarget, ServerEntry
from emceepee.errors import InvalidArguments, NotAllowed
from emceepee.guard.policy import AddServerPolicy


class Resolver:
    """A resolver that answers from a list."""

    def __init__(self, **hosts: str) -> None:
        self._hosts = {host.replace("_", "."): address for host, address in hosts.items()}

    async def __call__(self, host: str, port: int) -> list[SocketAddress]:
        if host not in self._hosts:
            raise socket.gaierror("no such host")
        return [(socket.AF_INET, (self._hosts[host], port))]


KNOWN = Resolver(public_example="8.8.8.8", inner_example="10.0.0.1", mapped_example="64:ff9b::7f00:1")
POLICY = AddServerPolicy(lookup=KNOWN)


def entry(**fields: Any) -> ServerEntry:
    return ServerEntry.model_validate({"name": "x"} | fields)


async def test_local_callers_may_add_any_server() -> None:
    for given in ({"command": "x"}, {"url": "http://127.0.0.1/mcp"}, {"url": "http://nowhere.example"}):
        spec = await POLICY.admit(entry(**given), is_remote=False)
        assert not (isinstance(spec.target, HttpTarget) and spec.target.is_public)


async def test_remote_callers_may_add_public_urls_and_are_restricted_to_them() -> None:
    spec = await POLICY.admit(entry(url="http://public.example/mcp"), is_remote=True)
    assert isinstance(spec.target, HttpTarget)
    assert spec.target.is_public


@pytest.mark.parametrize("host", ["inner.example", "mapped.example", "unknown.example"])
async def test_remote_callers_may_not_add_private_urls(host: str) -> None:
    with pytest.raises(NotAllowed, match="private networks"):
        await POLICY.admit(entry(url=f"http://{host}/mcp"), is_remote=True)


async def test_logins_are_guarded_for_servers_that_the_policy_restricts() -> None:
    """The operator lists allowed servers; each address of their logins is checked against that list."""
    listing = AddServerPolicy(lookup=KNOWN, urls=("http://inner.example",))
    for policy, url, is_remote, expected in (
        (POLICY, "http://public.example/mcp", True, (True, True)),
        (POLICY, "http://inner.example/mcp", False, (False, False)),
        (listing, "http://inner.example/mcp", True, (False, True)),
        (listing, "http://inner.example/mcp", False, (False, True)),
    ):
        spec = await policy.admit(entry(url=url), is_remote=is_remote)
        assert isinstance(spec.target, HttpTarget)
        assert (spec.target.is_public, spec.target.is_guarded) == expected


async def test_unix_sockets_are_allowed_only_for_local_callers_and_the_operator() -> None:
    socket_entry = entry(url="unix:///run/docker.sock:/mcp")
    spec = await POLICY.admit(socket_entry, is_remote=False)
    assert isinstance(spec.target, HttpTarget)
    with pytest.raises(NotAllowed, match=r"Unix sockets are not allowed to callers from elsewhere.*configuration file"):
        await POLICY.admit(socket_entry, is_remote=True)
    for allowing in (AddServerPolicy(remote_commands=True), AddServerPolicy(urls=("unix:///run/*", "http://*"))):
        with pytest.raises(NotAllowed, match="Unix sockets"):
            await allowing.admit(socket_entry, is_remote=True)
    with pytest.raises(NotAllowed, match=r"Unix sockets.*need a token or a login"):
        await AddServerPolicy(asks_for_proof=True).admit(socket_entry, is_remote=False)
    await AddServerPolicy(asks_for_proof=True, remote_commands=True).admit(socket_entry, is_remote=False)
    with pytest.raises(NotAllowed, match="--allow-url"):
        await AddServerPolicy(urls=("http://*",)).admit(socket_entry, is_remote=False)


async def test_remote_callers_may_start_programs_only_if_the_operator_allows_it() -> None:
    with pytest.raises(NotAllowed, match="--allow-commands"):
        await POLICY.admit(entry(command="x"), is_remote=True)
    await AddServerPolicy(remote_commands=True).admit(entry(command="x"), is_remote=True)


async def test_local_callers_of_an_endpoint_with_proof_may_start_programs_only_if_the_operator_allows_it() -> None:
    with pytest.raises(NotAllowed, match=r"need a token or a login.*--allow-commands"):
        await AddServerPolicy(asks_for_proof=True).admit(entry(command="x"), is_remote=False)
    await AddServerPolicy(asks_for_proof=True, remote_commands=True).admit(entry(command="x"), is_remote=False)
    await AddServerPolicy().admit(entry(command="x"), is_remote=False)


async def test_urls_that_the_operator_allows_may_be_private() -> None:
    policy = AddServerPolicy(urls=("http://inner.example",), lookup=KNOWN)
    spec = await policy.admit(entry(url="http://inner.example/mcp"), is_remote=True)
    assert isinstance(spec.target, HttpTarget)
    assert not spec.target.is_public
    with pytest.raises(NotAllowed, match="--allow-url"):
        await policy.admit(entry(url="http://public.example/mcp"), is_remote=False)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://*.example.com", "https://api.example.com/mcp"),
        ("https://*.example.com", "https://API.Example.com:443/mcp"),
        ("http://api.example.com:*", "http://api.example.com:8080/"),
        ("http://api.example.com/team/*", "http://api.example.com/team/a%20b"),
        ("http://[::1]:80", "http://[::1]/mcp"),
    ],
)
async def test_a_url_that_matches_the_allow_list_is_allowed(pattern: str, url: str) -> None:
    await AddServerPolicy(urls=(pattern,)).admit(entry(url=url), is_remote=True)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://*.example.com", "https://evil.com/.example.com"),
        ("https://*.example.com", "https://evil.com\\.example.com/"),
        ("https://*.example.com", "https://evil.com%2f.example.com/"),
        ("https://*.example.com", "https://evil.com%00.example.com/"),
        ("https://*.example.com", "https://user@api.example.com/"),
        ("https://*.example.com", "https://evil.com#.example.com"),
        ("https://*.example.com", "https://evil.com?.example.com"),
        ("https://*.example.com", "https://evil.com,api.example.com/"),
        ("https://*.example.com", "http://api.example.com/"),
        ("https://*.example.com", "https://api.example.com:8443/"),
        ("http://api.example.com/team/*", "http://api.example.com/team/../admin"),
        ("http://api.example.com/team/*", "http://api.example.com/team/%2e%2e/admin"),
        ("http://api.example.com/team/*", "http://api.example.com/team/%252e%252e/admin"),
        ("http://api.example.com/team/*", "http://api.example.com/team/..%5cadmin"),
        ("http://api.example.com/team/*", "http://api.example.com/team/..%2Fadmin"),
        ("http://api.example.com/team/*", "http://api.example.com/team/a\\..\\admin"),
    ],
)
async def test_a_disguised_url_is_rejected_by_the_allow_list(pattern: str, url: str) -> None:
    with pytest.raises(NotAllowed, match="--allow-url"):
        await AddServerPolicy(urls=(pattern,)).admit(entry(url=url), is_remote=True)


@pytest.mark.parametrize("root", ["~", "/proc/self/cwd", "relative", "~root", "http://h/x"])
async def test_roots_of_remote_callers_are_never_resolved_on_this_machine(root: str) -> None:
    with pytest.raises(InvalidArguments, match="file://"):
        await POLICY.admit(entry(url="http://public.example/mcp", roots=["file:///ok", root]), is_remote=True)


async def test_a_root_that_is_a_url_stays_unchanged() -> None:
    roots = ["file:///proc/self/cwd", "file:///a/../b", "file://~/x"]
    spec = await POLICY.admit(entry(url="http://public.example/mcp", roots=roots), is_remote=True)
    assert spec.roots == tuple(roots)
