"""The address of Redis, which the user specifies as one URL. Its text form and its repr omit the password."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

DEFAULT_PREFIX = "emceepee"
DEFAULT_PORT, SENTINEL_PORT = 6379, 26379
PLAIN, SENTINEL, CLUSTER = "redis", "redis+sentinel", "redis+cluster"
_TLS = {"rediss": PLAIN, "rediss+sentinel": SENTINEL, "rediss+cluster": CLUSTER}
SCHEMES = (PLAIN, SENTINEL, CLUSTER, *_TLS)
EXPECTED = (
    "redis://HOST:PORT/DB, rediss://…, redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB or redis+cluster://HOST:PORT"
)
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_OPTIONS = frozenset({"prefix", "ca", "cert", "key"})


class BadAddress(ValueError):
    """The message names the expected form and never contains the password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """A parsed URL. `nodes` are the first nodes to contact: the one Redis, sentinels, or some nodes of a cluster."""

    kind: str
    nodes: tuple[tuple[str, int], ...]
    database: int = 0
    service: str = ""  # the name that the sentinels use for the primary
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    has_tls: bool = False
    files: Mapping[str, str] = field(default_factory=dict)  # for TLS: ca, cert, key
    prefix: str = DEFAULT_PREFIX

    def __str__(self) -> str:
        """Return the URL without its user and password, for messages and logs."""
        scheme = next((tls for tls, plain in _TLS.items() if plain == self.kind), "") if self.has_tls else self.kind
        nodes = ",".join(f"{f'[{host}]' if ':' in host else host}:{port}" for host, port in self.nodes)
        path = "/".join(filter(None, (self.service, str(self.database) if self.database else "")))
        prefix = f"?prefix={self.prefix}" if self.prefix != DEFAULT_PREFIX else ""
        return f"{scheme}://{nodes}{'/' + path if path else ''}{prefix}"


def is_redis_url(text: str) -> bool:
    return text.partition("://")[0] in SCHEMES


def parse_address(url: str) -> RedisAddress:
    """Raises: BadAddress."""
    try:
        parts = urlsplit(url)
        return _parse(parts)
    except BadAddress:
        raise
    except ValueError:  # a bad port or bracket; the original message may contain the password
        raise BadAddress(f"expected {EXPECTED}") from None


def _parse(parts: SplitResult) -> RedisAddress:
    kind = _TLS.get(parts.scheme, parts.scheme)
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    service, database = _path(parts.path, kind)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(options.keys() - _OPTIONS):
        raise BadAddress(f"unknown options in the URL: {', '.join(unknown)}; expected {', '.join(sorted(_OPTIONS))}")
    prefix = options.get("prefix", DEFAULT_PREFIX)
    if not _PREFIX.fullmatch(prefix):
        raise BadAddress("a prefix has up to 64 letters, digits, dots, colons, hyphens and underscores")
    usual = SENTINEL_PORT if kind == SENTINEL else DEFAULT_PORT
    nodes = tuple(_node(text, usual) for text in hosts.split(","))
    if kind == PLAIN and len(nodes) > 1:
        raise BadAddress("several hosts are for redis+sentinel:// and redis+cluster://")
    return RedisAddress(
        kind=kind,
        nodes=nodes,
        database=database,
        service=service,
        username=unquote(username) or None,
        password=unquote(password) or None,
        has_tls=parts.scheme in _TLS,
        files={name: options[name] for name in ("ca", "cert", "key") if options.get(name)},
        prefix=prefix,
    )


def _node(text: str, usual_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    return parts.hostname or "localhost", parts.port or usual_port


def _path(path: str, kind: str) -> tuple[str, int]:
    words = [unquote(word) for word in path.split("/") if word]
    service = words.pop(0) if kind == SENTINEL and words else ""
    if kind == SENTINEL and not service:
        raise BadAddress("name the service that the sentinels watch: redis+sentinel://HOST:PORT/SERVICE/DB")
    if not words:
        return service, 0
    if len(words) > 1 or not words[0].isdecimal() or kind == CLUSTER:
        raise BadAddress("a cluster has one database" if kind == CLUSTER else "expected a number of a database after /")
    return service, int(words[0])
