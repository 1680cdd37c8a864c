"""The requests to an authorization server and its answers, as values."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import quote_plus, urlencode

from emceepee.backends.oauth.metadata.metadata import Malformed, read_object
from emceepee.backends.oauth.oauth_client import AuthMethod, OAuthClient
from emceepee.wire.json_types import JsonObject

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FORM = "application/x-www-form-urlencoded"
LONGEST_REASON = 200

Fields: TypeAlias = tuple[tuple[str, str], ...]


class DeferredPart(StrEnum):
    """Parts that only the sender can add, because they need a key, the current time, and randomness."""

    ASSERTION = "assertion"
    PROOF = "proof"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthRequest:
    """A request to an authorization server. Its `repr` hides secrets. `audience` is the audience of an assertion."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Fields = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    missing: frozenset[DeferredPart] = frozenset()
    client: OAuthClient | None = field(default=None, repr=False)
    audience: str = ""
    nonce: str | None = field(default=None, repr=False)

    @property
    def is_proven(self) -> bool:
        return DeferredPart.PROOF in self.missing

    def with_nonce(self, nonce: str) -> "OAuthRequest":
        return replace(self, nonce=nonce)

    def with_field(self, name: str, value: str) -> "OAuthRequest":
        return replace(self, form=(*self.form, (name, value)))

    def encoded_body(self) -> bytes | None:
        return urlencode(self.form).encode() if self.form else self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An HTTP response as a value. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class OAuthError:
    """An error that an authorization server reported. Its text is untrusted."""

    code: str
    description: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.description}" if self.description else self.code


def get(url: str) -> OAuthRequest:
    return OAuthRequest(method="GET", url=url, headers={"accept": "application/json"})


def post_json(url: str, document: bytes) -> OAuthRequest:
    headers = {"accept": "application/json", "content-type": "application/json"}
    return OAuthRequest(method="POST", url=url, headers=headers, body=document)


def post_form(
    url: str, fields: Mapping[str, str | None], *, client: OAuthClient, audience: str, is_proven: bool = False
) -> OAuthRequest:
    """Build a form request, authenticated by the client's authentication method."""
    form = [(name, value) for name, value in fields.items() if value is not None]
    headers = {"accept": "application/json", "content-type": FORM}
    missing = {DeferredPart.PROOF} if is_proven else set()
    match client.auth_method:
        case AuthMethod.BASIC:
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret or '')}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        case AuthMethod.POST:
            form += [("client_id", client.client_id), ("client_secret", client.client_secret or "")]
        case AuthMethod.PRIVATE_KEY_JWT:
            form += [("client_id", client.client_id), ("client_assertion_type", ASSERTION_TYPE)]
            missing.add(DeferredPart.ASSERTION)
        case AuthMethod.NONE:
            form.append(("client_id", client.client_id))
    return OAuthRequest(
        method="POST",
        url=url,
        headers=headers,
        form=tuple(form),
        missing=frozenset(missing),
        client=client,
        audience=audience,
    )


def answered_object(answer: HttpAnswer) -> JsonObject | None:
    """Return the JSON object in the body, or None if the body is not a JSON object."""
    try:
        return read_object(answer.body)
    except Malformed:
        return None


def error_in(answer: HttpAnswer) -> OAuthError | None:
    """Return the error in an answer, in the format of RFC 6749, or None."""
    document = answered_object(answer)
    code = document.get("error") if document is not None else None
    if document is None or not isinstance(code, str) or not code:
        return None
    description = document.get("error_description")
    return OAuthError(plain(code), plain(description) if isinstance(description, str) else "")


def plain(text: str) -> str:
    """Return untrusted text on one line, without unprintable characters and truncated."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_REASON]).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"
