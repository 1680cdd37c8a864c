"""What is said before the protocol begins: one line each way."""

import json
from dataclasses import asdict, dataclass
from typing import Any

LONGEST_GREETING = 16 << 10  # bytes


class BadGreeting(Exception):
    """What is at the other end does not speak as emceepee does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Of whoever attaches. Its session goes on under that name, and stays after it if `is_kept`."""

    version: str
    configuration: str
    session: str
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Of the daemon: lines in both directions are the protocol's from now on. Or `refusal` says why not."""

    pid: int
    longest_line: int = 0
    link_file: str | None = None  # where the newest link to the console is
    refusal: str | None = None
    notice: str | None = None  # what whoever is let in should know


def write_greeting(greeting: Hello | Welcome) -> bytes:
    return json.dumps({"emceepee": type(greeting).__name__.lower(), **asdict(greeting)}).encode() + b"\n"


def read_hello(line: bytes) -> Hello:
    """Raises: BadGreeting."""
    found = _read(line, "hello")
    texts = [found.get(name) for name in ("version", "configuration", "session")]
    if not all(isinstance(text, str) and text for text in texts):
        raise BadGreeting("the greeting lacks something")
    version, configuration, session = map(str, texts)
    return Hello(version=version, configuration=configuration, session=session, is_kept=found.get("is_kept") is True)


def read_welcome(line: bytes) -> Welcome:
    """Raises: BadGreeting."""
    found = _read(line, "welcome")
    try:
        return Welcome(
            pid=int(found["pid"]),
            longest_line=int(found["longest_line"]),
            link_file=found.get("link_file"),
            refusal=found.get("refusal"),
            notice=found.get("notice"),
        )
    except (KeyError, TypeError, ValueError):
        raise BadGreeting("the greeting lacks something") from None


def _read(line: bytes, kind: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("emceepee") != kind:
        raise BadGreeting("no emceepee is at the other end of the socket")
    return found
