"""Errors of a backend, as its callers see them. The layers below raise only RpcError and LinkError."""

from typing import Any

from emceepee.backends.link import LinkError, LinkFailure, NoAccess, RpcError
from emceepee.backends.oauth.metadata.well_known import LONGEST_URL
from emceepee.backends.spec import one_line
from emceepee.errors import BackendDisconnected, EmceepeeError, ExecutionFailed, LinksNeeded, LoginNeeded, TimedOut
from emceepee.state.connection.connection_state import ConnectionStatus, ConnectionView
from emceepee.surface import call_to
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import URL_ELICITATION_REQUIRED

MOST_LINKS = 5  # per error
LONGEST_MESSAGE = 500  # characters
_SCHEMES = ("https://", "http://")
BROKEN = (LinkFailure.CLOSED, LinkFailure.UNREACHABLE, LinkFailure.SESSION_LOST)


def unavailable(server: str, view: ConnectionView, *, next_retry_ms: int | None) -> BackendDisconnected:
    """Return the error for a missing link: the reason, and what to do."""
    reason = view.reason or "it was not connected yet"
    if view.status is ConnectionStatus.AUTHORIZING:
        return login_needed(server, reason)
    details: JsonObject = {"server": server, "status": str(view.status)}
    if view.status is ConnectionStatus.RECONNECTING:
        next_ms = next_retry_ms or 0
        details |= {"reconnectAttempt": view.attempt, "nextRetryMs": next_ms}
        words = f"is lost and being reconnected (attempt {view.attempt}, next in {next_ms} ms): {reason}. Call again,"
    else:
        what = "could not be connected" if view.status is ConnectionStatus.ERROR else "is disconnected"
        words = f"{what}: {reason}. Try {call_to('reconnect_server')},"
    return BackendDisconnected(
        f'Server "{server}" {words} or remove it and add it with other settings.', details=details
    )


def misconfigured(server: str, reason: str) -> BackendDisconnected:
    """Return the error for a server whose configuration entry is invalid. Retrying cannot help."""
    return BackendDisconnected(
        f'Server "{server}" is disabled by a mistake in its configuration: {reason}. Correct that: emceepee reads the '
        "file again when it changes, and environment variables when it starts.",
        details={"server": server, "status": str(ConnectionStatus.ERROR), "reason": "configuration"},
    )


def login_needed(server: str, reason: str) -> LoginNeeded:
    return LoginNeeded(
        f'Server "{server}" requires a login first: {reason}. {call_to("get_elicitations")} has the URL for the user '
        f"to open. If their browser cannot return to emceepee, call {call_to('finish_authorization')} with the URL "
        "of its last page.",
        details={"server": server, "status": str(ConnectionStatus.AUTHORIZING)},
    )


def request_failed(server: str, method: str, error: RpcError | LinkError | LoginNeeded) -> EmceepeeError:
    if isinstance(error, LoginNeeded):
        return error
    if isinstance(error, RpcError):
        if links := required_links(error.error):
            return links_needed(server, method, links, error.error)
        return ExecutionFailed(
            f'Server "{server}" answered {method} with error {error.error.get("code")}: {error}',
            details={"server": server, "error": error.error},
        )
    if isinstance(error, NoAccess):
        if error.wants_person:
            return login_needed(server, str(error))
        return ExecutionFailed(
            f'Server "{server}" denied access to {method}: {error}. The request did not run.',
            details={"server": server},
        )
    if error.failure in BROKEN:
        ran = "It is not known whether it ran there. " if error.may_have_run else "It did not run there. "
        return BackendDisconnected(
            f'Server "{server}" was lost during {method}: {error}. {ran}'
            f"emceepee reconnects by itself; call again, or look at {call_to('list_servers')}.",
            details={"server": server, "failure": str(error.failure), "mayHaveRun": error.may_have_run},
        )
    return ExecutionFailed(f'Server "{server}" gave no usable answer to {method}: {error}', details={"server": server})


_NO_RESULT = {
    "forgotten": "no longer recognizes the task that ran the call. The server may have restarted, or the task's time "
    "to live has expired. It is unknown whether the call completed: check before you call again",
    "not_offered": "began its own task, but offers no method to query it. It is unknown whether the call completed: "
    "check before you call again",
    "cancelled": "cancelled the task that ran the call",
    "error": "ran the call as its own task, which failed",
    "broken": "began its own task, but its answers about the task are invalid. It is unknown whether the call "
    "completed: check before you call again",
}


def task_failed(server: str, reason: str, message: str | None, error: JsonObject | None) -> EmceepeeError:
    """Return the error for a call that the backend ran as its own task and that ended without a result.

    `message` is the last status message of the task.
    """
    said = f' The server said: "{message}".' if message else ""
    details: JsonObject = {"server": server, "reason": f"task_{reason}"} | ({"error": error} if error else {})
    if reason in ("forgotten", "not_offered", "broken"):
        details["mayHaveRun"] = True
    condition = BackendDisconnected if reason == "forgotten" else ExecutionFailed
    return condition(f'Server "{server}" {_NO_RESULT[reason]}.{said}', details=details)


def not_answered(server: str, method: str, seconds: float) -> TimedOut:
    return TimedOut(f'Server "{server}" did not answer {method} within {seconds:g} s.', details={"server": server})


def needs_handshake_era(server: str, words: str, answer: JsonObject, *, is_split: bool) -> EmceepeeError:
    """Return the error for a server that cannot ask questions in 2026-07-28.

    `answer` is the server's result, which contains its error message. `is_split` means that only this call is made in
    the other era.
    """
    if is_split:
        remedy = "emceepee makes this call in an earlier one from now on"
        hint = ""
    else:
        remedy = "emceepee connects it again in an earlier one"
        hint = ' To use that one from the start, set its mode to "legacy".'
    return EmceepeeError(
        f'Server "{server}" tried to ask a question, which it cannot do in protocol version 2026-07-28. {remedy}, '
        f"in which the server can ask: call again. Any effects of the interrupted call remain.{hint} "
        f"The server said: {words}",
        details={"server": server} | answer,
    )


def first_text(result: JsonObject) -> str:
    """Return the message of a tool's error, or an empty string."""
    content = result.get("content")
    first = content[0] if isinstance(content, list) and content else None
    return str(first.get("text", "")) if isinstance(first, dict) else ""


# Error -32042: the user must open URLs before the server handles the request.


def required_links(error: JsonObject) -> tuple[JsonObject, ...]:
    """Return at most `MOST_LINKS` links of a JSON-RPC error, each as the parameters of an elicitation."""
    if error.get("code") != URL_ELICITATION_REQUIRED:
        return ()
    data = error.get("data")
    listed = data.get("elicitations") if isinstance(data, dict) else None
    found = [_link(entry) for entry in listed[:MOST_LINKS]] if isinstance(listed, list) else []
    return tuple(link for link in found if link is not None)


def links_needed(server: str, method: str, links: tuple[JsonObject, ...], error: JsonObject) -> LinksNeeded:
    shown = "".join(f" {link['message']} {link['url']}" for link in links)
    what = "a link" if len(links) == 1 else f"{len(links)} links"
    return LinksNeeded(
        f'Server "{server}" did not run {method}, because the user has to open {what} first. Show it to the user, and '
        f"call again when they are done there. {call_to('get_elicitations')} lists it as a question.{shown}",
        details={"server": server, "error": error},
        links=links,
    )


def _link(entry: Any) -> JsonObject | None:
    if not isinstance(entry, dict) or entry.get("mode", "url") != "url":
        return None
    url, given, message = entry.get("url"), entry.get("elicitationId"), entry.get("message")
    if not isinstance(url, str) or len(url) > LONGEST_URL or not url.isprintable() or " " in url:
        return None
    if not url.lower().startswith(_SCHEMES):
        return None
    link: JsonObject = {"mode": "url", "url": url}
    link["message"] = one_line(message, LONGEST_MESSAGE) if isinstance(message, str) else ""
    return link | ({"elicitationId": given[:LONGEST_MESSAGE]} if isinstance(given, str) else {})
