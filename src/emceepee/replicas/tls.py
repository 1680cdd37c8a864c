"""TLS between replicas: both sides show the same kind of certificate."""

import ssl
from pathlib import Path
from typing import NamedTuple


class ReplicaTls(NamedTuple):
    """The contexts of the listening side and of the connecting side."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def tls_contexts(certificate: Path, key: Path, authority: Path | None = None) -> ReplicaTls:
    """Return the contexts. With an authority, both sides must show a certificate that it issued. Without an authority,
    a listener must show a generally trusted certificate, or the very one that is given here.

    Raises:
        OSError: a file cannot be read, or is not what it should be (`ssl.SSLError`).
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cafile=authority)
    client.load_cert_chain(certificate, key)
    if authority is None:
        client.load_verify_locations(certificate)
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        server.load_verify_locations(authority)
        server.verify_mode = ssl.CERT_REQUIRED
    return ReplicaTls(server, client)
