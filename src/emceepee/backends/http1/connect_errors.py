"""Describes connection errors for people, with advice on what to do next."""

import os
import ssl
from socket import gaierror

from emceepee.backends.http1.proxies import Proxy
from emceepee.backends.http1.tls_contexts import TlsSettings

# OpenSSL's codes.
UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})  # this machine trusts no issuer in the certificate chain
OUT_OF_DATE = frozenset({9, 10})
OTHER_NAME = frozenset({62, 64})
NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})
CERTIFICATE_WANTED = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED"})
CERTIFICATE_REFUSED = frozenset(
    {
        *("SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "SSLV3_ALERT_CERTIFICATE_REVOKED"),
        *("SSLV3_ALERT_CERTIFICATE_EXPIRED", "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "TLSV1_ALERT_UNKNOWN_CA"),
        *("TLSV1_ALERT_ACCESS_DENIED", "TLSV1_ALERT_DECRYPT_ERROR"),
    }
)
HANDSHAKE_ENDED = frozenset({"SSLV3_ALERT_HANDSHAKE_FAILURE", "UNEXPECTED_EOF_WHILE_READING"})
WHERE_OURS_GOES = "give one with tls.cert and tls.key of this server in the configuration file"
# Some servers send no alert: servers on Python's event loops only close the connection.
MAY_WANT_CERTIFICATE = f"if it wants a client certificate, or another one, {WHERE_OURS_GOES}"


def describe(
    error: Exception,
    *,
    seconds: float = 0.0,
    is_tls: bool = False,
    settings: TlsSettings | None = None,
    proxy: Proxy | None = None,
) -> str:
    """Return why a connection failed. `seconds` is the timeout, and `proxy` is the proxy of the connection."""
    through = "" if proxy is None else f" through the proxy {proxy}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}{_advice(error.verify_code, settings, proxy)}"
    if isinstance(error, ssl.SSLError):
        return _tls_words(error)
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"no connection{through} within {seconds:g} s"
    if is_tls and isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return f"it closed the connection during the TLS handshake; {MAY_WANT_CERTIFICATE}"
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, gaierror):
        return os.strerror(error.errno)  # without the details that event loops add to the message
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def alert_words(error: Exception | None) -> str | None:
    """Return why a server rejected our client certificate or requires one, or None if the error has another cause."""
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    if reason in CERTIFICATE_WANTED:
        return f"it wants a client certificate: {WHERE_OURS_GOES}"
    if reason in CERTIFICATE_REFUSED:
        return f"it does not accept our client certificate ({_plain(reason)}): {WHERE_OURS_GOES} that it knows"
    return None


def _tls_words(error: ssl.SSLError) -> str:
    if (words := alert_words(error)) is not None:
        return words
    if error.reason in NO_TLS:
        return "it does not speak TLS there; perhaps its address begins with http://, and not with https://"
    reason = _plain(error.reason) if error.reason else str(error.strerror or error)
    hint = f"; {MAY_WANT_CERTIFICATE}" if error.reason in HANDSHAKE_ENDED else ""
    return f"TLS failed: {reason}{hint}"


def _advice(code: int, settings: TlsSettings | None, proxy: Proxy | None) -> str:
    if code in OUT_OF_DATE:
        return ". The server's operator has to renew it; check the clock of this machine as well"
    if code in OTHER_NAME:
        return (
            ". In the server's URL, use a name from the certificate, or specify that name as tls.server_name "
            "in the configuration file"
        )
    if code not in UNKNOWN_ISSUER:
        return ""
    swapped = "" if proxy is None else f" The proxy {proxy} may have put a certificate of its own there."
    if settings is not None and settings.ca is not None:
        return f". It is of no CA in the file that tls.ca names.{swapped}"
    return (
        ". If it was issued by a private CA, name a file with that CA's certificate: for every server with --ca-bundle "
        f"or SSL_CERT_FILE, for this one with tls.ca in the configuration file.{swapped}"
    )


def _plain(reason: str | None) -> str:
    return (reason or "").lower().replace("_", " ")
