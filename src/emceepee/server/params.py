"""The parameters of all requests except tool calls, in the protocol's shape.

Unknown fields are accepted, because later versions and extensions add some.
"""

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)

MOST_SUBSCRIPTIONS = 1000  # resources in one listen, which keeps its request in memory while it runs
_LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class _Sampling(msgspec.Struct):
    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class Elicitation(msgspec.Struct):
    """The kinds of questions that a caller accepts."""

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class _Capabilities(msgspec.Struct):
    """A caller's capabilities that both eras share."""

    elicitation: Elicitation | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    roots: dict[str, Any] | None = None
    sampling: _Sampling | None = None


class _HandshakeCapabilities(_Capabilities):
    tasks: dict[str, Any] | None = None


class _ModernCapabilities(_Capabilities):
    extensions: dict[str, dict[str, Any]] | None = None


class _Icon(msgspec.Struct):
    src: str


class _Implementation(msgspec.Struct, rename="camel"):
    name: str
    version: str
    description: str | None = None
    icons: list[_Icon] | None = None
    title: str | None = None
    website_url: str | None = None


class _Meta(msgspec.Struct, rename="camel"):
    progress_token: int | str | None = None


class _Envelope(_Meta, kw_only=True):
    capabilities: _ModernCapabilities = msgspec.field(name=CLIENT_CAPABILITIES_META_KEY)
    version: str = msgspec.field(name=PROTOCOL_VERSION_META_KEY)
    client: _Implementation | None = msgspec.field(name=CLIENT_INFO_META_KEY, default=None)
    log_level: _LogLevel | None = msgspec.field(name=LOG_LEVEL_META_KEY, default=None)


class RequestParams(msgspec.Struct):
    """Parameters of any request."""

    meta: _Meta | None = msgspec.field(name="_meta", default=None)


P = TypeVar("P", bound=RequestParams)


class InitializeParams(RequestParams, kw_only=True, rename="camel"):
    """The identity and capabilities of a handshake-era caller."""

    capabilities: _HandshakeCapabilities
    client_info: _Implementation
    protocol_version: str


class PageParams(RequestParams):
    """Parameters of a list request. Each list of emceepee fits on one page."""

    cursor: str | None = None


class ResourceParams(RequestParams, kw_only=True):
    """Parameters of a request about one resource."""

    uri: str


class Wanted(msgspec.Struct, rename="camel"):
    """The changes that a 2026-07-28 caller subscribes to."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: Annotated[list[str], msgspec.Meta(max_length=MOST_SUBSCRIPTIONS)] | None = None


class ListenParams(RequestParams, kw_only=True):
    """Parameters of `subscriptions/listen`."""

    notifications: Wanted


def read(shape: type[P], params: JsonObject | None) -> P:
    """Raises: msgspec.ValidationError."""
    return msgspec.convert(params or {}, shape)


def check_envelope(params: JsonObject | None) -> None:
    """Validate the envelope of a 2026-07-28 request. Raises: msgspec.ValidationError."""
    msgspec.convert((params or {}).get("_meta"), _Envelope)
