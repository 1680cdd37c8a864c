"""The redirect URI of a login: one per authorization server, unless the server's answers name their issuer.

An answer without an issuer may come from any authorization server. A hostile server can redirect the browser to
another one, with the `state` and the code challenge of its own login. It would then receive the code and the verifier
(a mix-up attack, RFC 9700 section 4.4). So an authorization server that does not promise `iss` (RFC 9207) gets its own
redirect URI, which ends in a digest of its issuer, and its own client document. A client that emceepee registered at
one authorization server is then invalid at every other one, and a person's consent for one does not apply to another.

A client that was registered by hand has a single redirect URI, which a person entered at the authorization server.
"""

import hashlib
import re

from emceepee.backends.oauth.metadata.metadata import ServerMetadata
from emceepee.backends.oauth.oauth_settings import OAuthSettings

_DIGEST = re.compile(r"/([0-9a-f]{32})(?:\.json)?$")
_SUFFIX = ".json"


def redirect_address(base: str, settings: OAuthSettings, server: ServerMetadata) -> str:
    """Return the redirect URI for logins at `server`."""
    return with_digest(base, _digest_for(settings, server)) if base else base


def document_address(base: str, settings: OAuthSettings, server: ServerMetadata) -> str:
    """Return the URL of emceepee's own client document for `server`."""
    return with_digest(base, _digest_for(settings, server))


def with_digest(base: str, digest: str) -> str:
    """Return the address for the issuer with this digest. An empty digest changes nothing."""
    stem = base.removesuffix(_SUFFIX)
    return f"{stem}/{digest}{base[len(stem) :]}" if digest else base


def without_digest(address: str) -> str:
    """Return the base address of a redirect URI."""
    return _DIGEST.sub("", address)


def digest_in_path(path: str) -> str:
    """Return the issuer's digest in a path, or an empty string."""
    found = _DIGEST.search(path)
    return found.group(1) if found else ""


def _digest_for(settings: OAuthSettings, server: ServerMetadata) -> str:
    has_document = settings.client_metadata_url is not None and server.accepts_client_documents
    is_registered_by_hand = settings.client_id is not None or has_document
    if server.sends_issuer or is_registered_by_hand:
        return ""
    return hashlib.sha256(server.issuer.encode()).hexdigest()[:32]
