"""Reads the metadata of a server (RFC 9728) and of its authorization server (RFC 8414).

URLs stay exactly as received, because they are compared and sent character by character. The SDK's models normalize
some of them.
"""

from dataclasses import dataclass
from typing import Any

from emceepee.backends.oauth.metadata.scopes import MOST_SCOPES, Scopes
from emceepee.backends.oauth.metadata.well_known import LONGEST_URL
from emceepee.wire.codec import decode
from emceepee.wire.json_types import JsonObject

MOST_SERVERS = 10
Names = tuple[str, ...]


class Malformed(ValueError):
    """The document is invalid. The text describes the problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceMetadata:
    resource: str
    authorization_servers: Names
    scopes_supported: Scopes | None = None
    requires_dpop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMetadata:
    """Metadata of an authorization server. `is_guessed`: it has no document, so 2025-03-26 defines the endpoints."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str
    registration_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: Scopes | None = None
    grant_types_supported: Names | None = None
    auth_methods_supported: Names | None = None
    challenge_methods_supported: Names | None = None
    dpop_algorithms_supported: Names | None = None
    takes_client_documents: bool = False
    sends_issuer: bool = False
    is_guessed: bool = False

    @property
    def accepts_client_documents(self) -> bool:
        """Whether a client may use the URL of its metadata document as its client ID, without a secret."""
        methods = self.auth_methods_supported
        return self.takes_client_documents and (methods is None or "none" in methods)


def read_resource_metadata(body: bytes) -> ResourceMetadata:
    """Raises: Malformed."""
    document = read_object(body)
    servers = _names(document, "authorization_servers")
    if not servers:
        raise Malformed("it names no authorization server")
    return ResourceMetadata(
        resource=_required(document, "resource"),
        authorization_servers=servers[:MOST_SERVERS],
        scopes_supported=_names(document, "scopes_supported"),
        requires_dpop=document.get("dpop_bound_access_tokens_required") is True,
    )


def read_server_metadata(body: bytes) -> ServerMetadata:
    """Raises: Malformed."""
    document = read_object(body)
    return ServerMetadata(
        issuer=_required(document, "issuer"),
        authorization_endpoint=_text(document, "authorization_endpoint"),
        token_endpoint=_required(document, "token_endpoint"),
        registration_endpoint=_text(document, "registration_endpoint"),
        device_authorization_endpoint=_text(document, "device_authorization_endpoint"),
        revocation_endpoint=_text(document, "revocation_endpoint"),
        scopes_supported=_names(document, "scopes_supported"),
        grant_types_supported=_names(document, "grant_types_supported"),
        auth_methods_supported=_names(document, "token_endpoint_auth_methods_supported"),
        challenge_methods_supported=_names(document, "code_challenge_methods_supported"),
        dpop_algorithms_supported=_names(document, "dpop_signing_alg_values_supported"),
        takes_client_documents=document.get("client_id_metadata_document_supported") is True,
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def guessed_metadata(origin: str) -> ServerMetadata:
    """Return the default metadata that 2025-03-26 defines for a server without a metadata document."""
    return ServerMetadata(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
        is_guessed=True,
    )


def read_object(body: bytes) -> JsonObject:
    """Raises: Malformed."""
    try:
        document = decode(body)
    except ValueError as error:
        raise Malformed("it is no JSON") from error
    if not isinstance(document, dict):
        raise Malformed("it is no JSON object")
    return document


def _required(document: JsonObject, name: str) -> str:
    if (value := _text(document, name)) is None:
        raise Malformed(f'it has no "{name}"')
    return value


def _text(document: JsonObject, name: str) -> str | None:
    value = document.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_URL else None


def _names(document: JsonObject, name: str) -> Names | None:
    value: Any = document.get(name)
    if not isinstance(value, list):
        return None
    return tuple(dict.fromkeys(each for each in value[:MOST_SCOPES] if isinstance(each, str) and each))
