"""The redirect address of a login: one per authorization server, unless its answers name their issuer.

An answer without an issuer may come from any authorization server. A hostile one can send the browser on to another,
with the `state` and the code challenge of its own login, and would then be given the code and the verifier (a mix-up
attack, RFC 9700 section 4.4). So an authorization server that does not promise `iss` (RFC 9207) gets an address of its
own, which ends in a digest of its issuer, and a client document of its own. A client that emceepee registered at one
authorization server is then good for no other, and consent that a person gave it is not remembered for another.

A client that was registered by hand has the one address that a person wrote down there.
"""

import hashlib
import re

from emceepee.backends.oauth.metadata.metadata import ServerMetadata
from emceepee.backends.oauth.settings import OAuthSettings

_DIGEST = re.compile(r"/([0-9a-f]{32})(?:\.json)?$")
_SUFFIX = ".json"


def redirect_address(base: str, settings: OAuthSettings, server: ServerMetadata) -> str:
    """Return the address at which `server` answers."""
    return with_digest(base, _digest_for(settings, server)) if base else base


def document_address(base: str, settings: OAuthSettings, server: ServerMetadata) -> str:
    """Return the address of emceepee's own client document for `server`."""
    return with_digest(base, _digest_for(settings, server))


def with_digest(base: str, digest: str) -> str:
    """Return the address that belongs to the issuer with that digest. An empty digest changes nothing."""
    stem = base.removesuffix(_SUFFIX)
    return f"{stem}/{digest}{base[len(stem) :]}" if digest else base


def without_digest(address: str) -> str:
    """Return the address that a redirect address was made from."""
    return _DIGEST.sub("", address)


def digest_in_path(path: str) -> str:
    """Return the digest of the issuer that a path belongs to, or an empty string."""
    found = _DIGEST.search(path)
    return found.group(1) if found else ""


def _digest_for(settings: OAuthSettings, server: ServerMetadata) -> str:
    has_document = settings.client_metadata_url is not None and server.accepts_client_documents
    is_registered_by_hand = settings.client_id is not None or has_document
    if server.sends_issuer or is_registered_by_hand:
        return ""
    return hashlib.sha256(server.issuer.encode()).hexdigest()[:32]
