"""Server configurations, validated where they enter and immutable afterward."""

import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from emceepee.backends.http1.http_client import HOP_BY_HOP
from emceepee.backends.http1.origin import Address, is_unix_url
from emceepee.backends.http1.tls_contexts import TlsSettings
from emceepee.backends.oauth.oauth_settings import OAuthEntry, OAuthSettings, oauth_entry_of
from emceepee.clock import iso
from emceepee.state.connection.retry import RetryPolicy
from emceepee.state.limits import LONGEST
from emceepee.state.tool_filter import ToolFilter, has_wildcards
from emceepee.surface import OWN_SERVER
from emceepee.telemetry.redaction import public_place, public_url
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

RESERVED_NAME = OWN_SERVER
ROOT_SCHEME = "file://"
MOST_GLOBS, MOST_WILDCARDS, LONGEST_GLOB = 1000, 100, 200  # per allowedTools and per deniedTools
MOST_ROOTS, LONGEST_ROOT = 100, 4096
LONGEST_URL = 8192
MOST_HEADERS, LONGEST_HEADER = 100, 8192
OWN_HEADERS = HOP_BY_HOP | {"host", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"}
DESCRIPTION_CHARS = 500  # longer ones are cut: lists written for other programs may have long descriptions

Mode: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
HttpKind: TypeAlias = Literal["any", "http", "sse"]


class RestartConfig(BaseModel):
    """How often and how fast to restart a crashed stdio server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    maxAttempts: int = Field(5, ge=0, le=1_000_000)
    baseDelayMs: int = Field(1000, ge=1, le=86_400_000)
    maxDelayMs: int = Field(60_000, ge=1, le=86_400_000)
    backoffMultiplier: float = Field(2, ge=1, le=1000)

    def policy(self, *, stable_after: float) -> RetryPolicy:
        return RetryPolicy(
            base=self.baseDelayMs / 1000,
            multiplier=self.backoffMultiplier,
            longest=self.maxDelayMs / 1000,
            most=self.maxAttempts if self.enabled else 0,
            stable_after=stable_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """A server at an address. For kind "any", Streamable HTTP is tried first, then the older SSE transport."""

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    kind: HttpKind = "any"
    sends_session_id: bool = True  # whether the server receives the Emceepee-Session-Id header
    tls: TlsSettings | None = None
    is_public: bool = field(default=False, compare=False)  # connect only to public internet addresses
    is_guarded: bool = field(default=False, compare=False)  # the operator's policy applies, also to logins
    owner: str = field(default="", compare=False, repr=False)  # whose connections are used; the dialer sets it
    oauth: OAuthSettings | None = None  # configured login settings; None: use the settings that the server requests

    @property
    def label(self) -> str:
        return public_place(self.url)

    @property
    def may_log_in(self) -> bool:
        """Whether emceepee may log in. It may not if a credential is configured, which then must be used."""
        has_credential = any(name.strip().lower() == "authorization" for name in self.headers)
        return not has_credential and "@" not in urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTarget:
    """A server that runs as a child process."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    restart: RestartConfig = RestartConfig()

    @property
    def label(self) -> str:
        return f"stdio://{self.command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableTarget:
    """The target of a server that cannot be started: its entry is invalid or disabled."""

    label: str
    reason: str


Target: TypeAlias = HttpTarget | StdioTarget | UnusableTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec:
    """One configured server."""

    name: str
    target: Target
    tools: ToolFilter = ToolFilter()
    timeout: float | None = None
    mode: Mode = "auto"
    roots: tuple[str, ...] = ()
    is_shared: bool = False  # whether all sessions of a principal share one link
    idle_stop: float | None = None  # seconds without use until it is stopped; None: the limit's value, 0: never
    record: str | None = None  # the file to record traffic to
    description: str | None = field(default=None, compare=False)  # changing it does not cause a reconnect
    tags: tuple[str, ...] = field(default=(), compare=False)  # nor does changing these
    added: "Provenance | None" = field(default=None, compare=False)  # None: added by the operator, or unknown

    @property
    def words(self) -> tuple[str | None, tuple[str, ...]]:
        """The description and the tags, which do not affect how the server works."""
        return self.description, self.tags


@dataclass(frozen=True, slots=True)
class Provenance:
    """The client that added a server, and the time."""

    client: str | None  # its name and version
    at: datetime

    def __str__(self) -> str:
        return f"{'a client' if self.client is None else encode_text(self.client)} added it at {iso(self.at)}"


def root_uri(root: str) -> str:
    """Return a root as a URI. A path is made absolute on this machine."""
    return root if root.startswith(ROOT_SCHEME) else Path(os.path.expanduser(root)).resolve().as_uri()


def one_line(text: str, most: int) -> str:
    """Return the text on one line without control characters. If it is longer than `most`, it is cut and marked."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def has_control_characters(text: str) -> bool:
    return any(letter < " " or letter == "\x7f" for letter in text)


def without_control_characters(name: str) -> str:
    if has_control_characters(name):
        raise ValueError("must not have control characters")
    return name


LONGEST_SERVER_NAME = 100
LONGEST_PROGRAM_PATH = 4096  # characters
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_SERVER_NAME),
    AfterValidator(without_control_characters),
]


def _bounded(items: list[str] | None, *, most: int, longest: int) -> list[str] | None:
    if items is not None and len(items) > most:
        raise ValueError(f"may have at most {most} entries, found {len(items)}")
    if any(len(item) > longest for item in items or ()):
        raise ValueError(f"an entry may have at most {longest} characters")
    return items


_FREE_OBJECT: JsonObject = {"type": "object", "additionalProperties": True}  # the full schema would cost 200 bytes


class ServerEntry(BaseModel):
    """A server as written in add_server and in the configuration file."""

    name: Name = Field(description="Your name for it")
    description: str | None = Field(None, description="Its purpose")
    url: str | None = Field(None, description="HTTP or SSE address")
    command: str | None = Field(None, description="Program to run")
    type: Literal["http", "sse", "stdio"] | None = Field(None, description="Default: found out")
    headers: dict[str, str] | None = Field(None, repr=False, description="HTTP headers")
    args: list[str] | None = Field(None, repr=False, description="Program arguments")
    env: dict[str, str] | None = Field(None, repr=False, description="Environment variables")
    cwd: str | None = Field(None, description="Program directory")
    restartConfig: Annotated[RestartConfig | None, WithJsonSchema(_FREE_OBJECT)] = Field(
        None, description=f"Program restarts: {', '.join(RestartConfig.model_fields)}"
    )
    allowedTools: list[str] | None = Field(None, description="Names or globs")
    deniedTools: list[str] | None = Field(None, description="Names or globs; beats allowed")
    timeout_ms: int | None = Field(None, ge=0, le=round(LONGEST * 1000), description="Default for calls to it")
    mode: Mode = Field("auto", description="Protocol era")
    roots: list[str] | None = Field(None, description="Directories offered to it")
    sessionHeader: bool | None = Field(None, description="false: no Emceepee-Session-Id")
    oauth: Annotated[OAuthEntry | None, WithJsonSchema(_FREE_OBJECT)] = Field(
        None, repr=False, description="Login: client_id, client_secret, scopes, grant"
    )

    @field_validator("url")
    @classmethod
    def _short_address(cls, url: str | None) -> str | None:
        if url is not None and len(url) > LONGEST_URL:
            raise ValueError(f"may have at most {LONGEST_URL} characters")
        if url is not None and is_unix_url(url):
            Address.of(url)
            return url
        try:
            urlsplit(url or "").port  # noqa: B018  # the attribute parses the port on access
        except ValueError:
            raise ValueError("is not an address: its host or port cannot be read") from None
        return url

    @field_validator("command", "cwd")
    @classmethod
    def _short_path(cls, path: str | None) -> str | None:
        if path is not None and len(path) > LONGEST_PROGRAM_PATH:  # no system opens it, and errors would repeat it
            raise ValueError(f"may have at most {LONGEST_PROGRAM_PATH} characters")
        return path

    @field_validator("allowedTools", "deniedTools")
    @classmethod
    def _few_short_globs(cls, globs: list[str] | None) -> list[str] | None:
        if sum(map(has_wildcards, globs or ())) > MOST_WILDCARDS:
            raise ValueError(f"may have at most {MOST_WILDCARDS} entries with wildcards, and {MOST_GLOBS} names")
        return _bounded(globs, most=MOST_GLOBS, longest=LONGEST_GLOB)

    @field_validator("roots")
    @classmethod
    def _few_clean_roots(cls, roots: list[str] | None) -> list[str] | None:
        for root in roots or ():
            without_control_characters(root)
        return _bounded(roots, most=MOST_ROOTS, longest=LONGEST_ROOT)

    @field_validator("headers")
    @classmethod
    def _few_short_headers(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        _bounded([*(headers or {}).keys(), *(headers or {}).values()], most=2 * MOST_HEADERS, longest=LONGEST_HEADER)
        return headers

    @model_validator(mode="after")
    def _one_target(self) -> "ServerEntry":
        if self.name == RESERVED_NAME:
            raise ValueError(f'the name "{RESERVED_NAME}" is reserved for emceepee itself; choose another')
        if (self.url is None) == (self.command is None):
            raise ValueError("give either url (HTTP or SSE server) or command (stdio server), and only one of them")
        if self.url is not None and not self.url.lower().startswith(("http://", "https://", "unix://")):
            raise ValueError(f"url must begin with http://, https:// or unix://, not {public_url(self.url)[:60]!r}")
        if (self.command is not None) != (self.type == "stdio") and self.type is not None:
            raise ValueError(f'type "{self.type}" does not go with {"command" if self.command else "url"}')
        of_programs, of_addresses = ("args", "env", "cwd", "restartConfig"), ("headers", "sessionHeader", "oauth")
        stray = of_programs if self.url is not None else of_addresses
        for key in stray:
            if getattr(self, key) is not None:
                raise ValueError(f"{key} does not go with {'url' if self.url else 'command'}")
        return self

    def spec(self) -> BackendSpec:
        return BackendSpec(
            name=self.name,
            target=self._target(),
            tools=ToolFilter(tuple(self.allowedTools or ()), tuple(self.deniedTools or ())),
            timeout=None if self.timeout_ms is None else self.timeout_ms / 1000,
            mode=self.mode,
            roots=tuple(root_uri(root) for root in self.roots or ()),
            description=one_line(self.description or "", DESCRIPTION_CHARS) or None,
        )

    def _target(self) -> HttpTarget | StdioTarget:
        if self.url is not None:
            kind: HttpKind = self.type if self.type in ("http", "sse") else "any"
            sends_header = self.sessionHeader is not False
            oauth = None if self.oauth is None else self.oauth.settings()
            return HttpTarget(
                url=self.url, headers=self.headers or {}, kind=kind, sends_session_id=sends_header, oauth=oauth
            )
        assert self.command is not None  # _one_target guarantees it
        return StdioTarget(
            command=self.command,
            args=tuple(self.args or ()),
            env=self.env or {},
            cwd=self.cwd,
            restart=self.restartConfig or RestartConfig(),
        )


def entry_of(spec: BackendSpec) -> ServerEntry:
    """Return the entry that creates this server."""
    target = spec.target
    if isinstance(target, HttpTarget):
        where: JsonObject = {"url": target.url, "headers": target.headers or None}
        where |= {"type": None if target.kind == "any" else target.kind}
        where |= {"sessionHeader": None if target.sends_session_id else False}
        where |= {"oauth": None if target.oauth is None else oauth_entry_of(target.oauth)}
    else:
        assert isinstance(target, StdioTarget)  # an unusable target comes only from a file and is never written
        restart = None if target.restart == RestartConfig() else target.restart
        where = {"command": target.command, "args": list(target.args) or None, "env": target.env or None}
        where |= {"cwd": target.cwd, "restartConfig": restart}
    return ServerEntry(
        name=spec.name,
        description=spec.description,
        allowedTools=list(spec.tools.allowed) or None,
        deniedTools=list(spec.tools.denied) or None,
        timeout_ms=None if spec.timeout is None else round(spec.timeout * 1000),
        mode=spec.mode,
        roots=list(spec.roots) or None,
        **where,
    )
