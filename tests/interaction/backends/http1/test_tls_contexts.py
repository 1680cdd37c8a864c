"""Servers of private CAs that require client certificates, and the error message for each TLS failure."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import NoResponse, NotConnected
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.http1.tls_contexts import TlsContexts, TlsSettings
from support.backends.raw_server import RawServer, raw_server
from support.fakes.clock import FakeClock
from support.system.certificates import Authority, server_context, split

BOUND = 10.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def pool() -> AsyncIterator[ConnectionPool]:
    contexts = TlsContexts()
    async with ConnectionPool.running(FakeClock(), contexts.of(None), contexts=contexts) as running:
        yield running
    assert (running.open, running.slots.occupied) == (set(), 0)


@asynccontextmanager
async def private_server(
    authority: Authority, name: str = "localhost", *, days: int = 1, older: bool = False, wants: Path | None = None
) -> AsyncIterator[RawServer]:
    context = server_context(authority.issue(name, days=days), clients_of=wants)
    if older:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with raw_server(context) as running:
        yield running


def client_of(pool: ConnectionPool, server: RawServer, tls: TlsSettings | None) -> HttpClient:
    return HttpClient(pool, f"https://localhost:{server.port}/mcp", {}, tls=tls)


async def reach(client: HttpClient, server: RawServer) -> None:
    async with asyncio.timeout(BOUND):
        asking = asyncio.ensure_future(client.request("POST", b"{}"))
        peer = await server.peer()
        await peer.request()
        peer.answer(b"hello")
        assert await (await asking).read(100) == b"hello"


@asynccontextmanager
async def alerting_server(context: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that tells why a handshake fails, as most do, and hangs up when one succeeds."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        is_over = False
        while not is_over and (data := await reader.read(65536)):
            incoming.write(data)
            try:
                tls.do_handshake()
                is_over = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                is_over = True
            writer.write(outgoing.read())
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def failure_of(client: HttpClient) -> str:
    async with asyncio.timeout(BOUND):
        with pytest.raises((NotConnected, NoResponse)) as failure:
            await client.request("POST", b"{}")
    return str(failure.value)


async def test_a_server_with_a_private_ca_is_reached_only_with_that_ca_configured(
    pool: ConnectionPool, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other", "another CA")
    async with private_server(authority) as server:
        await reach(client_of(pool, server, TlsSettings(ca=str(authority.file))), server)
        words = await failure_of(client_of(pool, server, None))
        assert words.startswith("its certificate is not valid: unable to get local issuer certificate")
        assert "--ca-bundle" in words
        assert "tls.ca" in words
        assert "of no CA in the file that tls.ca names" in await failure_of(
            client_of(pool, server, TlsSettings(ca=str(other.file)))
        )


async def test_a_ca_bundle_verifies_every_server_in_it(authority: Authority) -> None:
    contexts = TlsContexts(authority.file)
    async with (
        private_server(authority) as server,
        ConnectionPool.running(FakeClock(), contexts.of(None), contexts=contexts) as pool,
    ):
        await reach(client_of(pool, server, None), server)
        await reach(client_of(pool, server, TlsSettings(server_name="localhost")), server)


async def test_a_server_whose_certificate_has_another_name_is_reached_if_that_name_is_configured(
    pool: ConnectionPool, authority: Authority
) -> None:
    ca = str(authority.file)
    async with private_server(authority, "tracker.test") as server:
        words = await failure_of(client_of(pool, server, TlsSettings(ca=ca)))
        assert words.startswith("its certificate is not valid: Hostname mismatch")
        assert "tls.server_name" in words
        await reach(client_of(pool, server, TlsSettings(ca=ca, server_name="tracker.test")), server)


async def test_an_expired_certificate_is_named_in_the_error(pool: ConnectionPool, authority: Authority) -> None:
    async with private_server(authority, days=-1) as server:
        words = await failure_of(client_of(pool, server, TlsSettings(ca=str(authority.file))))
    assert words.startswith("its certificate is not valid: certificate has expired. The server's operator has to renew")


async def test_with_insecure_tls_a_server_is_reached_with_any_certificate(
    pool: ConnectionPool, authority: Authority
) -> None:
    async with private_server(authority, "tracker.test", days=-1) as server:
        await reach(client_of(pool, server, TlsSettings(insecure=True)), server)


@pytest.mark.parametrize("older", [False, True])
async def test_a_client_certificate_is_sent_to_a_server_that_requests_one(
    older: bool, pool: ConnectionPool, authority: Authority
) -> None:
    certificate, key = split(authority.issue("a client"))
    shown = TlsSettings(ca=str(authority.file), cert=str(certificate), key=str(key))
    async with private_server(authority, older=older, wants=authority.file) as server:
        await reach(client_of(pool, server, shown), server)


@pytest.mark.parametrize("older", [False, True])
async def test_the_error_for_a_closed_tls_handshake_suggests_a_client_certificate(
    older: bool, pool: ConnectionPool, authority: Authority
) -> None:
    async with private_server(authority, older=older, wants=authority.file) as server:
        words = await failure_of(client_of(pool, server, TlsSettings(ca=str(authority.file))))
    assert "if it wants a client certificate, or another one, give one with tls.cert and tls.key" in words


async def test_the_error_for_a_failed_tls_handshake_quotes_the_alert_of_the_server(
    pool: ConnectionPool, authority: Authority, tmp_path: Path
) -> None:
    ca = str(authority.file)
    known, unknown = (one.issue("a client") for one in (authority, Authority(tmp_path / "other", "another CA")))
    async with alerting_server(server_context(authority.issue("localhost"), clients_of=authority.file)) as port:

        async def words(settings: TlsSettings) -> str:
            return await failure_of(HttpClient(pool, f"https://localhost:{port}/mcp", {}, tls=settings))

        assert await words(TlsSettings(ca=ca)) == (
            "it wants a client certificate: give one with tls.cert and tls.key of this server in the configuration file"
        )
        said = await words(TlsSettings(ca=ca, cert=str(unknown)))
        assert said.startswith("it does not accept our client certificate (tlsv1 alert unknown ca)")
        assert "the connection ended" in await words(TlsSettings(ca=ca, cert=str(known)))


async def test_clients_with_different_certificates_share_no_connections(
    pool: ConnectionPool, authority: Authority
) -> None:
    ca = str(authority.file)
    async with private_server(authority, wants=authority.file) as server:
        ours, theirs = (TlsSettings(ca=ca, cert=str(authority.issue(name))) for name in ("ours", "theirs"))
        await reach(client_of(pool, server, ours), server)
        await reach(client_of(pool, server, theirs), server)
        assert "client certificate" in await failure_of(client_of(pool, server, TlsSettings(ca=ca)))
        assert len(server.accepted) == 2


async def test_a_renewed_client_certificate_is_used_on_the_next_connection(
    pool: ConnectionPool, authority: Authority, tmp_path: Path
) -> None:
    ca, file = str(authority.file), tmp_path / "ours.pem"
    file.write_bytes(authority.issue("ours", days=-1).read_bytes())
    async with private_server(authority, wants=authority.file) as server:
        client = client_of(pool, server, TlsSettings(ca=ca, cert=str(file)))
        assert "if it wants a client certificate, or another one" in await failure_of(client)
        file.write_bytes(authority.issue("ours").read_bytes())
        await reach(client, server)


async def test_a_server_without_tls_is_named_in_the_error(pool: ConnectionPool) -> None:
    async with raw_server() as server:
        asking = asyncio.ensure_future(client_of(pool, server, None).request("GET"))
        (await server.peer()).send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(NotConnected, match="it does not speak TLS there; perhaps its address begins with http://"):
            await asking


async def test_an_ipv6_address_with_a_zone_is_reached_with_a_certificate_without_that_zone(
    authority: Authority,
) -> None:
    async with ConnectionPool.running(FakeClock(), None) as pool:
        listener = await asyncio.start_server(_answer, "::1", 0)
        port = listener.sockets[0].getsockname()[1]
        async with listener, asyncio.timeout(BOUND):
            response = await HttpClient(pool, f"http://[::1%251]:{port}/mcp", {}).request("GET")
            assert await response.read(1000) == b"host: [::1]:%d" % port


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    host = next(line for line in head.split(b"\r\n") if line.startswith(b"host:"))
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(host), host))
    writer.close()
