"""Who is admitted: tokens, logins, and the pages for which a login counts."""

from typing import Any

import pytest

from emceepee.guard.access_control import AccessControl, AccessRules, is_same_origin
from emceepee.guard.caller_identity import LOCAL, CallerIdentity, Rejection
from emceepee.guard.logins import Logins
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Store
from support.fakes.clock import FakeClock

HOST = b"127.0.0.1:8080"
OURS = {b"sec-fetch-site": b"same-origin"}
OPENED = {b"sec-fetch-site": b"none", b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document"}
Given = dict[bytes, bytes]


class GateScene:
    """A gate and a login of the principal ada."""

    def __init__(self, *, logins: bool = True, store: Store | None = None, **rules: Any) -> None:
        self.logins = Logins(FakeClock(), store=store)
        self.gate = AccessControl(AccessRules(**rules), None, self.logins if logins else None)
        self.secret = self.logins.begin("ada").encode()
        self.cookie = {b"cookie": b"emceepee_8080=" + self.secret}

    async def at_mcp(self, given: Given, method: str = "POST") -> CallerIdentity | Rejection:
        return await self.gate.admit({b"host": HOST, **given}, "127.0.0.1", method=method)

    async def at_console(self, given: Given, method: str = "POST") -> str | Rejection:
        return await self.gate.admit_to_console({b"host": HOST, **given}, "127.0.0.1", method=method)


@pytest.mark.parametrize(
    ("method", "headers", "counts"),
    [
        ("POST", OURS, True),
        ("GET", OURS, True),
        ("DELETE", OURS | {b"origin": b"http://127.0.0.1:8080"}, True),
        ("POST", {b"sec-fetch-site": b"same-site"}, False),  # another port of this host
        ("GET", {b"sec-fetch-site": b"same-site"}, False),
        ("POST", {b"sec-fetch-site": b"same-site", b"origin": b"http://127.0.0.1:8080"}, False),
        ("POST", {b"sec-fetch-site": b"cross-site"}, False),
        ("GET", {b"sec-fetch-site": b"cross-site", b"sec-fetch-mode": b"no-cors", b"sec-fetch-dest": b"image"}, False),
        ("GET", OPENED, True),
        ("GET", OPENED | {b"sec-fetch-site": b"same-site"}, True),
        ("GET", OPENED | {b"sec-fetch-dest": b"iframe"}, False),
        ("GET", OPENED | {b"sec-fetch-mode": b"cors"}, False),
        ("POST", OPENED, False),
        ("POST", OPENED | {b"sec-fetch-site": b"same-site"}, False),
        ("POST", {b"sec-fetch-site": b""}, False),
        ("POST", {b"origin": b"http://127.0.0.1:8080"}, True),
        ("POST", {b"origin": b"https://127.0.0.1:8080"}, True),
        ("POST", {b"origin": b"http://127.0.0.1:3000"}, False),
        ("GET", {b"origin": b"http://127.0.0.1:3000"}, False),
        ("POST", {b"origin": b"http://localhost:8080"}, False),
        ("POST", {b"origin": b"http://127.0.0.1"}, False),
        ("POST", {b"origin": b"ftp://127.0.0.1:8080"}, False),
        ("POST", {b"origin": b"null"}, False),
        ("POST", {}, False),
        ("DELETE", {}, False),
        ("GET", {}, True),  # a program, or a browser that opens an address without TLS
    ],
)
def test_a_login_cookie_counts_only_for_requests_of_our_own_page(method: str, headers: Given, counts: bool) -> None:
    assert is_same_origin({b"host": HOST, **headers}, method=method) is counts


@pytest.mark.parametrize("origin", [b"http://", b"https://"])
def test_a_request_without_a_host_header_is_never_same_origin(origin: bytes) -> None:
    assert not is_same_origin({b"origin": origin}, method="POST")


async def test_an_open_endpoint_admits_local_callers_and_a_login_identifies_them() -> None:
    keeper = GateScene()
    assert await keeper.at_mcp({}) == CallerIdentity(LOCAL)
    assert await keeper.at_mcp(keeper.cookie | OURS) == CallerIdentity("ada", is_proven=True)


@pytest.mark.parametrize(
    "given",
    [
        {b"cookie": b"emceepee_8080=wrong", **OURS},
        {b"cookie": b"emceepee_8080=", **OURS},
        {b"cookie": b"\xff\xfe", **OURS},
        {b"authorization": b"Bearer wrong"},
    ],
)
async def test_an_invalid_cookie_is_ignored_on_an_open_endpoint(given: Given) -> None:
    assert await GateScene().at_mcp(given) == CallerIdentity(LOCAL)


async def test_a_login_at_another_process_is_valid_here_at_once() -> None:
    store = MemoryStore(is_durable=True)
    here, there = GateScene(store=store, only_logins=True), GateScene(store=store.another_process())
    assert isinstance(await here.at_mcp(there.cookie | OURS), Rejection)
    await there.logins.save()
    assert await here.at_mcp(there.cookie | OURS) == CallerIdentity("ada", is_proven=True)
    there.logins.end(there.secret.decode())
    await there.logins.save()
    await here.logins.reload()
    assert isinstance(await here.at_console(there.cookie | OURS), Rejection)


async def test_a_login_cookie_sent_by_another_site_is_ignored() -> None:
    keeper = GateScene()
    assert await keeper.at_mcp(keeper.cookie | {b"sec-fetch-site": b"same-site"}) == CallerIdentity(LOCAL)


async def test_a_login_of_an_emceepee_on_another_port_is_not_valid_here() -> None:
    keeper = GateScene(only_logins=True)
    assert isinstance(await keeper.at_mcp({b"cookie": b"emceepee_8081=" + keeper.secret, **OURS}), Rejection)


async def test_a_foreign_cookie_with_our_name_does_not_hide_ours() -> None:
    keeper = GateScene()
    cookie = b"emceepee_8080=tossed; emceepee_8080=" + keeper.secret
    assert await keeper.at_console({b"cookie": cookie, **OURS}) == "ada"


async def test_a_token_takes_precedence_and_a_login_is_accepted_as_well() -> None:
    keeper = GateScene(tokens={"sésame": "bob"})
    bearer = {b"authorization": b"Bearer " + "sésame".encode()}
    assert await keeper.at_mcp(bearer) == CallerIdentity("bob", is_proven=True)
    assert await keeper.at_mcp(bearer | keeper.cookie | OURS) == CallerIdentity("bob", is_proven=True)
    assert await keeper.at_mcp(keeper.cookie | OURS) == CallerIdentity("ada", is_proven=True)
    assert await keeper.at_console(bearer) == "bob"
    assert await keeper.at_console(keeper.cookie | OURS) == "ada"


@pytest.mark.parametrize("given", [{}, {b"authorization": b"Basic eA=="}, {b"authorization": b"Bearer  "}])
async def test_an_endpoint_with_tokens_admits_only_a_token_or_a_login(given: Given) -> None:
    keeper = GateScene(tokens={"sesame": "bob"})
    for verdict in (await keeper.at_mcp(given), await keeper.at_console(given)):
        assert isinstance(verdict, Rejection)
        assert (verdict.status, verdict.headers) == (401, ((b"www-authenticate", b"Bearer"),))


async def test_a_wrong_token_is_rejected_even_with_a_valid_login() -> None:
    keeper = GateScene(tokens={"sesame": "bob"})
    given = {b"authorization": b"Bearer wrong", **keeper.cookie, **OURS}
    assert isinstance(await keeper.at_mcp(given), Rejection)


async def test_the_console_admits_nobody_without_proof() -> None:
    """Even if /mcp is open to local programs, and if no token can be sent."""
    keeper = GateScene()
    for given in ({}, {b"authorization": b"Bearer x"}, keeper.cookie, {b"cookie": b"emceepee_8080=x", **OURS}):
        assert await keeper.at_console(given) == Rejection(401, "Log in at /console/login.")
    assert await keeper.at_console(keeper.cookie | OURS) == "ada"
    assert await keeper.at_console(keeper.cookie | OPENED, "GET") == "ada"


async def test_an_endpoint_for_logins_only_rejects_local_programs_without_one() -> None:
    keeper = GateScene(only_logins=True)
    assert isinstance(verdict := await keeper.at_mcp({}), Rejection)
    assert verdict.status == 401
    assert await keeper.at_mcp(keeper.cookie | OURS) == CallerIdentity("ada", is_proven=True)


async def test_without_a_console_login_cookies_are_ignored() -> None:
    keeper = GateScene(logins=False)
    assert await keeper.at_mcp(keeper.cookie | OURS) == CallerIdentity(LOCAL)
    assert isinstance(await keeper.at_console(keeper.cookie | OURS), Rejection)


async def test_an_ended_login_is_no_longer_valid() -> None:
    keeper = GateScene()
    keeper.logins.end(keeper.secret.decode())
    assert isinstance(await keeper.at_console(keeper.cookie | OURS), Rejection)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((host, None) for host in ("127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]", "[::1]:65535")),
        *((host, 421) for host in ("x@127.0.0.1", "127.0.0.1/x", "127.0.0.1#", "127.0.0.1?", "127.0.0.1:abc")),
        *((host, 421) for host in ("127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1 ", "[::1", "::1", "")),
        *((host, 421) for host in ("127.0.0.1:80:80", "127.0.0.1\\@evil", "localhost%00", "127.0.0.1,evil", "[::1]x")),
    ],
)
def test_a_host_header_must_be_a_valid_name_or_address_with_a_port(host: str, status: int | None) -> None:
    verdict = GateScene(any_address=True).gate.check_host_and_origin({b"host": host.encode()})
    assert (verdict and verdict.status) == status


@pytest.mark.parametrize("origin", ["http://x@127.0.0.1", "http://127.0.0.1:abc", "http://localhost/x", "http://"])
def test_an_invalid_origin_header_is_rejected(origin: str) -> None:
    verdict = GateScene().gate.check_host_and_origin({b"host": HOST, b"origin": origin.encode()})
    assert verdict is not None
    assert verdict.status == 403


@pytest.mark.parametrize(
    ("host", "origin", "is_remote"),
    [
        (b"127.0.0.1:8080", b"http://127.0.0.1:8080", False),
        (b"127.0.0.1:8080", b"http://localhost:8080", False),
        (b"localhost:8080", b"http://[::1]:8080", False),
        (b"127.0.0.1:8080", b"http://127.0.0.1:3000", True),
        (b"localhost:8080", b"http://localhost:5173", True),
        (b"localhost:8080", b"http://localhost", True),
        (b"127.0.0.1:8080", b"http://localhost:6274", False),  # which the operator allowed
        (b"127.0.0.1:8080", b"https://app.example", False),
    ],
)
async def test_a_page_of_another_local_server_counts_as_remote_unless_it_is_allowed(
    host: bytes, origin: bytes, is_remote: bool
) -> None:
    keeper = GateScene(origins=frozenset({"http://localhost:6274", "https://app.example"}))
    headers = {b"host": host, b"origin": origin}
    assert keeper.gate.check_host_and_origin(headers) is None, "it may call"
    identity = await keeper.gate.admit(headers, "127.0.0.1", method="POST")
    assert isinstance(identity, CallerIdentity)
    assert identity.is_remote is is_remote


@pytest.mark.parametrize(
    ("given", "peer", "is_direct"),
    [
        ({}, "127.0.0.1", True),
        ({}, "::1", True),
        ({}, None, True),
        ({b"host": b"localhost:8080"}, "127.0.0.1", True),
        ({}, "192.0.2.7", False),
        ({b"host": b"mcp.example"}, "127.0.0.1", False),
        ({b"host": b"192.0.2.1:8080"}, "127.0.0.1", False),
        ({b"host": b""}, "127.0.0.1", False),
        ({b"origin": b"http://127.0.0.1:8080"}, "127.0.0.1", False),
        ({b"x-forwarded-proto": b"https"}, "127.0.0.1", False),
        ({b"cf-connecting-ip": b""}, "127.0.0.1", False),
    ],
)
async def test_only_a_local_program_without_a_proxy_is_a_direct_caller(
    given: Given, peer: str | None, is_direct: bool
) -> None:
    identity = await GateScene().gate.admit({b"host": HOST, **given}, peer, method="POST")
    assert isinstance(identity, CallerIdentity)
    assert identity.is_direct is is_direct
