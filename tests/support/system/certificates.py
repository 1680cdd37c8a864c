"""Certificate authorities that exist for one test."""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


def self_signed(folder: Path, *, names: tuple[str, ...] = ("localhost",), address: str = "127.0.0.1") -> Path:
    """A file with a key and the certificate that it signed for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    alternatives = [*map(x509.DNSName, names), x509.IPAddress(ip_address(address))]
    builder = _builder("a test", key, alternatives, days=1, is_authority=True).issuer_name(_name("a test"))
    file = folder / "certificate.pem"
    file.write_bytes(_key_pem(key) + builder.sign(key, hashes.SHA256()).public_bytes(_PEM))
    return file


class Authority:
    """A private CA: `file` is its certificate, and `issue` makes those of servers and clients."""

    def __init__(self, folder: Path, name: str = "a private CA") -> None:
        self._folder, self._name, self._key = folder, name, ec.generate_private_key(ec.SECP256R1())
        folder.mkdir(exist_ok=True)
        certificate = _builder(name, self._key, [], days=1, is_authority=True).issuer_name(_name(name))
        self.file = folder / "ca.pem"
        self.file.write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(_PEM))

    def issue(self, *names: str, days: int = 1) -> Path:
        """A file with a key and the certificate for it; with negative `days` it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(names[0], key, [x509.DNSName(name) for name in names], days=days)
        certificate = builder.issuer_name(_name(self._name)).sign(self._key, hashes.SHA256())
        file = self._folder / f"{names[0]}.pem"
        file.write_bytes(_key_pem(key) + certificate.public_bytes(_PEM))
        return file


def split(file: Path) -> tuple[Path, Path]:
    """The certificate and the key of a file with both, each in a file of its own."""
    text = file.read_text()
    begin = text.index("-----BEGIN CERTIFICATE")
    certificate, key = file.with_suffix(".crt"), file.with_suffix(".key")
    certificate.write_text(text[begin:])
    key.write_text(text[:begin])
    return certificate, key


def server_context(file: Path, *, clients_of: Path | None = None) -> ssl.SSLContext:
    """With `clients_of`, the certificate of a CA, clients must show one that it issued."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if clients_of is not None:
        context.load_verify_locations(clients_of)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _builder(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    alternatives: Sequence[x509.GeneralName],
    *,
    days: int,
    is_authority: bool = False,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not alternatives:
        return builder
    return builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
