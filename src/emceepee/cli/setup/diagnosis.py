"""Derive problems and remedies from the symptoms of a server. Rules only; nothing is run."""

import errno
import re
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from socket import gaierror
from typing import TypeVar
from urllib.parse import urlsplit

from emceepee.backends.http1.connect_errors import UNKNOWN_ISSUER
from emceepee.backends.link import LinkError, RpcError
from emceepee.backends.process.stderr_lines import stderr_excerpt
from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.config.secret_references import is_secret_name

_NO_MODULE = re.compile(r"No module named|Cannot find module|ModuleNotFoundError|ERR_MODULE_NOT_FOUND|SyntaxError")
_INSTALL = {
    **dict.fromkeys(("npx", "npm", "node"), "install Node.js"),
    **dict.fromkeys(("uvx", "uv"), "install uv"),
    "docker": "install Docker, and start it",
    "bunx": "install Bun",
    "deno": "install Deno",
}
SHOWN_LINES = 5
_E = TypeVar("_E", bound=BaseException)


class FindingCode(StrEnum):
    """Possible problems of a server; stable, for programs."""

    MISSING_COMMAND = "missing_command"
    """Its program does not exist or is not on the PATH."""
    WRONG_INTERPRETER = "wrong_interpreter"
    """The program exists but cannot run the server, because the server is installed for another Python or Node.js."""
    BAD_REFERENCE = "bad_reference"
    """A reference such as `${env:NAME}` cannot be resolved."""
    BAD_ENTRY = "bad_entry"
    """Its configuration entry is invalid."""
    BAD_SETTING = "bad_setting"
    """A setting outside the server entries is invalid."""
    CLOSED_PORT = "closed_port"
    """Nothing listens at its address."""
    UNKNOWN_HOST = "unknown_host"
    """The host name in its URL cannot be resolved."""
    WRONG_TOKEN = "wrong_token"
    """It rejects the configured credentials."""
    WANTS_LOGIN = "wants_login"
    """It requires a login, which emceepee requests at its first use."""
    PRINTS_TO_STDOUT = "prints_to_stdout"
    """It prints to standard output, which is reserved for protocol messages."""
    UNKNOWN_CA = "unknown_ca"
    """Its certificate was issued by a CA that this machine does not trust."""
    BAD_CERTIFICATE = "bad_certificate"
    """Its certificate is invalid: it has expired or belongs to another name."""
    NOTHING_THERE = "nothing_there"
    """A program answers at its URL, but it is not an MCP server."""
    ENDS_AT_START = "ends_at_start"
    """Its process exits immediately; the message quotes its output."""
    NO_ANSWER = "no_answer"
    """It does not answer before the timeout."""
    NOT_USABLE = "not_usable"
    """Another problem, which the message describes."""
    OPEN_TO_OTHERS = "open_to_others"
    """The configuration contains secrets, and other users can read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem: `message` describes it, and `remedy` the solution. `command` is a replacement that would work."""

    code: FindingCode
    message: str
    remedy: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptoms:
    """The symptoms from a server's test. `program` is its command's path; `elsewhere` is a path outside the PATH."""

    error: RpcError | LinkError | TimeoutError | None = None
    seconds: float = 0.0
    stdout: Sequence[str] = ()
    stderr: Sequence[str] = ()
    program: str | None = None
    elsewhere: str | None = None
    interpreter: str | None = None  # the missing interpreter in the program's first line


def diagnose(spec: BackendSpec, seen: Symptoms) -> Iterator[Finding]:
    """Yield findings, the most severe first. Yield nothing if all is well."""
    if seen.error is not None:
        if isinstance(spec.target, StdioTarget):
            yield _of_program(spec.target, seen)
        elif isinstance(spec.target, HttpTarget):
            yield _of_address(spec.target, seen)
    if seen.stdout and seen.error is None:
        yield _prints(seen)


def _prints(seen: Symptoms) -> Finding:
    return Finding(
        code=FindingCode.PRINTS_TO_STDOUT,
        message=f"it prints to standard output, which is for messages only: {_shown(seen.stdout[:1])}",
        remedy="make it log to standard error; emceepee skips such lines, but other clients may fail on them",
    )


def _of_program(target: StdioTarget, seen: Symptoms) -> Finding:
    if seen.program is None:
        return _missing(target, seen)
    if seen.interpreter is not None:
        return Finding(
            code=FindingCode.WRONG_INTERPRETER,
            message=f"{seen.program} requires the interpreter {seen.interpreter}, which does not exist",
            remedy="reinstall the server, or specify the correct interpreter as command and the script in args",
        )
    if complaints := [line for line in seen.stderr if _NO_MODULE.search(line)]:
        return Finding(
            code=FindingCode.WRONG_INTERPRETER,
            message=f"{target.command} ({seen.program}) cannot run the server: {_shown(complaints[-1:])}",
            remedy="specify the full path of the interpreter in whose environment the server is installed, or "
            "install the server in this one",
        )
    if _has(seen.error, OSError) and not isinstance(seen.error, TimeoutError):
        return Finding(
            code=FindingCode.WRONG_INTERPRETER,
            message=str(seen.error),
            remedy="make it executable (chmod +x), or specify its interpreter as command and the file in args",
        )
    if isinstance(seen.error, RpcError):
        return Finding(
            code=FindingCode.NOT_USABLE,
            message=f"it answered with error {seen.error.code}: {seen.error}{_stderr(seen)}",
            remedy="read the message; an old server may need an upgrade",
        )
    if isinstance(seen.error, TimeoutError):
        words = f"it did not answer within {round(seen.seconds, 1):g} s"
        if seen.stdout:
            return Finding(
                code=FindingCode.PRINTS_TO_STDOUT,
                message=f"{words}, and prints to standard output, which is for messages only: {_shown(seen.stdout)}",
                remedy="make it log to standard error, and check that it is an MCP server: an argument may be "
                "missing in args",
            )
        return Finding(
            code=FindingCode.NO_ANSWER,
            message=words + _stderr(seen),
            remedy="start it in a terminal to see what it waits for; if the first start is still downloading "
            "packages, try again",
        )
    if seen.stdout and isinstance(seen.error, LinkError):
        return Finding(
            code=FindingCode.PRINTS_TO_STDOUT,
            message=f"{seen.error}. It printed to standard output: {_shown(seen.stdout)}",
            remedy="standard output is for messages only: read the output, and make the server log to standard error",
        )
    return Finding(
        code=FindingCode.ENDS_AT_START,
        message=f"{seen.error}",
        remedy="fix the reported problem; required environment variables go under env",
    )


def _missing(target: StdioTarget, seen: Symptoms) -> Finding:
    what = f"the program {target.command} was not found"
    if seen.elsewhere is not None:
        remedy = f"write {seen.elsewhere} as command (doctor --fix does it)"
        return Finding(code=FindingCode.MISSING_COMMAND, message=what, remedy=remedy, command=seen.elsewhere)
    hint = _INSTALL.get(target.command, "install it")
    return Finding(
        code=FindingCode.MISSING_COMMAND,
        message=what,
        remedy=f"{hint}, or set command to the full path of the program",
    )


def _of_address(target: HttpTarget, seen: Symptoms) -> Finding:
    error = seen.error
    host = urlsplit(target.url).netloc.rpartition("@")[2]
    if (certificate := _find(error, ssl.SSLCertVerificationError)) is not None:
        is_unknown = certificate.verify_code in UNKNOWN_ISSUER
        remedy = "if you trust that CA, specify its certificate as tls.ca of this server, or with --ca-bundle"
        if not is_unknown:
            remedy = "read the message; do not disable certificate verification"
        return Finding(
            code=FindingCode.UNKNOWN_CA if is_unknown else FindingCode.BAD_CERTIFICATE,
            message=str(error),
            remedy=remedy,
        )
    status = error.status if isinstance(error, LinkError | RpcError) else 0
    if status in (401, 403):
        return _refused(target, status, error)
    if status in (404, 405):
        return Finding(
            code=FindingCode.NOTHING_THERE,
            message=f"{host} answers, but has no MCP server at {urlsplit(target.url).path or '/'} (HTTP {status})",
            remedy="check its documentation for the URL: many end in /mcp, older ones in /sse",
        )
    if _find(error, gaierror) is not None:
        return Finding(
            code=FindingCode.UNKNOWN_HOST,
            message=str(error),
            remedy="check the host name in its url, and whether this machine is on the right network",
        )
    if (refusal := _find(error, OSError)) is not None and refusal.errno == errno.ECONNREFUSED:
        return Finding(
            code=FindingCode.CLOSED_PORT,
            message=f"nothing listens at {host}",
            remedy="start the server, or fix the port in its url",
        )
    if isinstance(error, TimeoutError):
        return Finding(
            code=FindingCode.NO_ANSWER,
            message=f"{host} did not answer within {round(seen.seconds, 1):g} s",
            remedy="check whether it is running, and whether a firewall or proxy blocks the connection",
        )
    return Finding(code=FindingCode.NOT_USABLE, message=str(error), remedy="read the message and the server's own log")


def _refused(target: HttpTarget, status: int, error: Exception | None) -> Finding:
    credentials = [name for name in target.headers if is_secret_name(name)]
    if not credentials and "@" not in urlsplit(target.url).netloc:
        return Finding(
            code=FindingCode.WANTS_LOGIN,
            message=f"it requires a login (HTTP {status})",
            remedy="no action needed: emceepee asks for the login when the server is first used. If it accepts a token "
            'instead, add "headers": {"Authorization": "Bearer ${env:NAME}"}',
        )
    where = f"headers.{credentials[0]}" if credentials else "url"
    return Finding(
        code=FindingCode.WRONG_TOKEN,
        message=f"it rejected the credentials in {where} (HTTP {status})",
        remedy="get a new token; check that the reference resolves to it, and that it has the prefix that the server "
        "expects, often Bearer",
    )


def _find(error: BaseException | None, kind: type[_E]) -> _E | None:
    """Return the first error of this type in the chain of causes."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, kind):
            return error
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None


def _has(error: BaseException | None, kind: type[BaseException]) -> bool:
    return _find(error, kind) is not None


def _stderr(seen: Symptoms) -> str:
    return f". It said: {_shown(stderr_excerpt(seen.stderr, most=SHOWN_LINES))}" if seen.stderr else ""


def _shown(lines: Sequence[str]) -> str:
    text = " | ".join(line.strip() for line in lines if line.strip())
    return text if len(text) <= 500 else f"{text[:500]}…"
