"""The greetings before the protocol begins: one line in each direction."""

import json
from dataclasses import asdict, dataclass
from typing import Any

HELLO, WELCOME = "hello", "welcome"  # the kinds of greetings, on the wire
LONGEST_GREETING = 16 << 10  # bytes, with the line break
LONGEST_WORDS = 1000  # characters of a refusal or a notice: escaped, each may take twelve bytes


class BadGreeting(Exception):
    """The program at the other end does not speak emceepee's protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonHello:
    """The greeting of a client. Its session continues under that name, and outlives the connection if `is_kept`."""

    version: str
    configuration: str
    session: str
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The greeting of the daemon. The protocol's lines follow in both directions, unless there is a `refusal`."""

    pid: int
    longest_line: int = 0
    link_file: str | None = None  # the file with the newest link to the console
    refusal: str | None = None
    notice: str | None = None  # for admitted clients


def write_greeting(greeting: DaemonHello | Welcome) -> bytes:
    kind, fields = HELLO, asdict(greeting)
    if isinstance(greeting, Welcome):
        kind = WELCOME
        fields |= {"refusal": _cut(greeting.refusal), "notice": _cut(greeting.notice)}
    return json.dumps({"emceepee": kind, **fields}).encode() + b"\n"


def _cut(words: str | None) -> str | None:
    return words if words is None or len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 1]}…"


def read_hello(line: bytes) -> DaemonHello:
    """Raises: BadGreeting."""
    found = _read(line, HELLO)
    texts = [found.get(name) for name in ("version", "configuration", "session")]
    if not all(isinstance(text, str) and text for text in texts):
        raise BadGreeting("it lacks the version, the configuration, or the session")
    version, configuration, session = map(str, texts)
    return DaemonHello(
        version=version, configuration=configuration, session=session, is_kept=found.get("is_kept") is True
    )


def read_welcome(line: bytes) -> Welcome:
    """Raises: BadGreeting."""
    found = _read(line, WELCOME)
    return Welcome(
        pid=_number(found, "pid"),
        longest_line=_number(found, "longest_line"),
        link_file=_text(found, "link_file"),
        refusal=_text(found, "refusal"),
        notice=_text(found, "notice"),
    )


def _number(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or value < 0:
        raise BadGreeting(f"{name} is not a number from 0")
    return value


def _text(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise BadGreeting(f"{name} is not text")
    return value


def _read(line: bytes, kind: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except RecursionError:
        raise BadGreeting("it is nested too deeply") from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("emceepee") != kind:
        raise BadGreeting(f"it is not the {kind} of an emceepee")
    return found
