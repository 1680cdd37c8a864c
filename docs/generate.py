"""Write the reference pages from the code: `python docs/generate.py`, or `--check` to compare without writing.

What the code declares is taken from there. Only what it does not say (what a key is for) is said here, next to the name
it belongs to; a name that is gone, or one without words, is an error.
"""

import argparse
import ast
import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from emceepee import errors
from emceepee.backends.http1.proxies import BYPASS_VARIABLE, HTTP_VARIABLE, HTTPS_VARIABLE
from emceepee.backends.oauth.oauth_settings import OAuthEntry
from emceepee.backends.process.child import INHERITED
from emceepee.backends.spec import RestartConfig, ServerEntry
from emceepee.cli import main as cli
from emceepee.cli.keep.state_command import PROBLEM
from emceepee.cli.setup.auth_outcome import DONE, FAILED, USAGE
from emceepee.cli.setup.config_command import SCHEMA_FILE
from emceepee.cli.setup.diagnosis import FindingCode
from emceepee.clients.client_file import ClientFile
from emceepee.clients.client_program import ClientProgram, Format
from emceepee.clients.entry_writer import Launch, entry_for
from emceepee.clients.known_clients import CLIENTS
from emceepee.config import file_reader as config_reading
from emceepee.config.former_limits import FORMER_LIMITS
from emceepee.config.server_entry import MOST_TAGS, ConfiguredEntry, TlsEntry
from emceepee.paths import CONFIG_VARIABLE, NATIVE_ELICITATION, NOTICES, SECRETS, SYNCS
from emceepee.sessions.views import Described
from emceepee.state.call_step import CALL
from emceepee.state.connection.connection_state import CONNECTION
from emceepee.state.diagrams import diagrams
from emceepee.state.events import EventType
from emceepee.state.limits import LIVE, LONGEST, Limits, range_of
from emceepee.state.machine import Machine
from emceepee.state.question import ELICITATION, SAMPLING, Gone
from emceepee.state.task import TASK
from emceepee.state.timer import TIMER
from emceepee.surface import SURFACES, Surface, is_listed
from emceepee.telemetry import logs
from emceepee.tools import catalogue
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import OwnResult, Tool
from emceepee.tools.declaration.parameter_schema import compact_schema
from emceepee.tools.replies.promotion import Promotion

REFERENCE = Path(__file__).parent / "reference"
PACKAGE = Path(__file__).parents[1] / "src" / "emceepee"
GUIDES = Path(__file__).parent / "how-to"
CLIENT_PAGES = GUIDES / "clients"
MARK = "<!-- Written by docs/generate.py from the code. Change the code or the script, then run it again. -->"

# What the `data` of an event holds, by type and key.
_TASK_DATA = {"taskId": "the task", "toolName": "the tool, or `read_resource` or `get_prompt`"}
_GONE_DATA = {"requestId": "the question", "reason": "see [reasons](#reasons)", "message": "the same in words"}
_ASKED_DATA = {
    "requestId": "the id for the answer",
    "params": "the server's question; only if `await_activity` has a `last_event_id`, because otherwise the question "
    "is beside the event",
    "callId?": "the id of the call that caused it and of its task, if known",
}
_PROCESS_DATA = {
    "name": "the server",
    "pid": "its process",
    "exitCode?": "its exit code, if it exited",
    "signal?": "the signal that ended it, if any",
    "stderrTail?": "an excerpt of its standard error",
}
EVENT_DATA: dict[str, dict[str, str]] = {
    "notification": {"method": "its method", "timestamp": "when it came", "params?": "as the server sent them"},
    "elicitation_request": _ASKED_DATA,
    "elicitation_expired": _GONE_DATA,
    "sampling_request": _ASKED_DATA,
    "sampling_expired": _GONE_DATA,
    "task_created": {**_TASK_DATA, "ttl": "milliseconds that it may work"},
    "task_completed": {**_TASK_DATA, "isError": "whether the server calls its own result an error"},
    "task_failed": {**_TASK_DATA, "error": "how it failed"},
    "task_cancelled": _TASK_DATA,
    "task_expired": {**_TASK_DATA, "ttl": "its time to live in milliseconds"},
    "timer_expired": {
        "timerId": "the timer",
        "message": "its message",
        "fireCount?": "of an interval: how often it has fired",
        "interval?": "of an interval: true",
    },
    "server_added": {"name": "the server", "url": "where it is, without secrets"},
    "server_removed": {"name": "the server"},
    "server_connected": {"name": "the server", "capabilities": "its declared capabilities"},
    "server_disconnected": {"name": "the server", "reason": "the cause of the loss"},
    "server_reconnecting": {
        "name": "the server",
        "attempt": "the number of the next attempt",
        "nextRetryMs": "the time until then, in milliseconds",
    },
    "server_reconnected": {
        "name": "the server",
        "attemptsTaken": "the number of attempts",
        "kind": "`blip` if it preserved emceepee's state, else `restart`",
        "invalidated": "the losses: `{tasks, pendingRequests}`",
    },
    "server_health_degraded": {
        "name": "the server",
        "consecutiveFailures": "checks in a row without an answer",
        "lastError": "the error of the last check",
    },
    "server_health_restored": {"name": "the server"},
    "process_started": {"name": "the server", "pid": "its process"},
    "process_crashed": _PROCESS_DATA,
    "restarting": {
        "name": "the server",
        "attempt": "the number of the attempt",
        "delayMs": "the time until then, in milliseconds",
    },
    "restarted": {"name": "the server", "pid": "its new process"},
    "restart_failed": {"name": "the server", "attempts": "the number of attempts", "error": "the last error"},
    "process_stopped": _PROCESS_DATA
    | {"reason?": "the reason why an idle process was stopped; the other details are then missing"},
}

# The diagrams whose states have a meaning each.
MACHINES: tuple[Machine[Any], ...] = (TASK, ELICITATION, SAMPLING, CALL, CONNECTION, TIMER)

TOP_KEYS = {
    "servers": "A list of servers, or an object of names and servers.",
    "mcpServers": "An object of names and servers, as other MCP programs write it.",
    "mcpClients": "Another name for `mcpServers`, which some programs use.",
    "limits": "An object of [limits](limits.md).",
    "roots": "Directories or `file://` URIs offered as roots to every server that has none of its own.",
    "notices": "Where replies report new events: `all`, in content and structured content; `blocks`, in content "
    "only; or `auto`: `all`, but `blocks` for "
    "[clients that show a model both](../how-to/keep-context-small.md#say-news-once).",
    "nativeElicitation": "Whether clients that declare elicitation show servers' questions by "
    "[their own means](../how-to/answer-questions.md#in-the-client): `auto`, `always`, or `never`.",
    "searchVectors": "A file of [word vectors](../how-to/find-tools.md#mix-in-word-vectors) for `codemode_search`.",
    "surface": "The default surface, which decides the listed tools: `full`, `lite`, or `codemode`.",
    "logLevel": f"The level of emceepee's own log: {', '.join(logs.LEVELS)}.",
    "logFormat": f"The format of its log lines: {', '.join(logs.FORMATS)}.",
    "state": "Where [state is stored](../how-to/keep-state.md): `memory`, `sqlite`, `sqlite:PATH`, or `redis://HOST`. "
    "The variable `EMCEEPEE_STATE` overrides it.",
    "secrets": "Where [tokens for servers are stored](../explanation/logins.md): `state`, encrypted with the state, or "
    "`keyring`, in the platform's keyring.",
    "stateSync": f"{' or '.join(f'`{name}`' for name in SYNCS)}. With `full`, commits survive a power failure.",
}
SERVER_KEYS = {
    "name": "Your name for it.",
    "description": "Its purpose, in a few words. Models see it in the instructions and in `list_servers`.",
    "url": "Address of an HTTP or SSE server: `http://…`, `https://…`, or `unix:///PATH/OF/SOCKET:/PATH`.",
    "command": "Program of a stdio server.",
    "type": "The transport. Without it, `url` tries Streamable HTTP first and the older SSE next.",
    "headers": "HTTP headers for every request to it.",
    "args": "Arguments of the program.",
    "env": "Variables for the program, besides those it [inherits](#what-a-child-process-inherits).",
    "cwd": "Working directory of the program.",
    "restartConfig": "See [below](#restartconfig).",
    "allowedTools": "Names or globs. Without it, all are allowed.",
    "deniedTools": "Names or globs. They override `allowedTools`.",
    "timeout_ms": "The default timeout of a call to it.",
    "mode": "The protocol era: detected, or fixed.",
    "roots": "Directories or `file://` URIs offered to it.",
    "sessionHeader": "`false`: it gets no `Emceepee-Session-Id` header.",
}
RESTART_KEYS = {
    "enabled": "Whether it is restarted at all.",
    "maxAttempts": "The most restarts in a row.",
    "baseDelayMs": "The delay before the first restart.",
    "maxDelayMs": "The longest delay.",
    "backoffMultiplier": "How much longer each delay is than the one before.",
}
TLS_KEYS = {
    "ca": "File with the certificates of the only CAs that may sign its certificate. Or its own certificate.",
    "cert": "File with the client certificate, and perhaps its key.",
    "key": "File with the key of that certificate.",
    "server_name": "The expected name in its certificate, if it differs from the address.",
    "insecure": "`true` disables all checks; the log has a warning.",
}
CONFIG_ONLY_KEYS = {
    "tls": "Its trusted CAs, and the client certificate. See [below](#tls).",
    "tags": f"Up to {MOST_TAGS} words of yours, which `list_servers` shows.",
    "sharing": "`shared`: all sessions of a principal use "
    "[one process or connection](../how-to/share-one-daemon.md#share-servers). Otherwise, `per-session`, each has its "
    "own.",
    "idleStop": "Seconds without use after which it is stopped until its next use; `0`: never. The default is set by "
    "the limits `idle_stop_seconds` and `process_idle_seconds`.",
    "record": "File in which its messages are [recorded](../how-to/record-and-replay.md).",
    "disabled": "`true` disables the server.",
    "serverUrl": "Another name for `url`.",
}


# The sections of the how-to page: title, when to change the limits, and their names.
LIMIT_SECTIONS = (
    (
        "Slow servers",
        "Raise these if your servers start or answer slowly. A call that takes longer than its caller waits is not "
        "lost: [it becomes a task](work-with-slow-tools.md).",
        (
            *("connect_seconds", "request_seconds", "list_patience_seconds"),
            *("call_seconds", "quiet_call_seconds", "longest_call_seconds"),
        ),
    ),
    (
        "Lost and idle servers",
        "These decide how soon emceepee reconnects to [a lost server](when-a-server-is-lost.md), and when it stops a "
        "server that nobody uses.",
        (
            *("http_retry_seconds", "longest_http_retry_seconds", "stable_seconds", "health_check_seconds"),
            *("idle_stop_seconds", "process_idle_seconds"),
        ),
    ),
    (
        "Many callers",
        "Raise these if many people or programs use [one emceepee over HTTP](serve-over-http.md). Lower them if one "
        "principal must not use up what all share. A short lease makes [replicas](run-replicas.md) take over sooner, "
        "and costs more requests to Redis.",
        (
            *("sessions_per_principal", "sessions_in_all", "connections_per_session"),
            *("session_idle_seconds", "session_kept_seconds", "unused_session_seconds"),
            *("processes_per_principal", "processes_in_all", "connections_per_origin", "connections_in_all"),
            "replica_lease_seconds",
        ),
    ),
    (
        "HTTP requests",
        "These protect emceepee from callers that send too much or too slowly. Raise them if your callers send large "
        "arguments, or have a slow connection.",
        (
            *("request_body_bytes", "request_body_seconds", "request_head_bytes", "request_head_seconds"),
            *("request_headers", "batch_messages", "pipelined_requests", "idle_connection_seconds"),
            *("unread_answer_seconds", "unread_bytes_in_all", "caller_connections"),
            *("replay_messages", "replay_seconds"),
        ),
    ),
    (
        "The model's context",
        "Lower these if replies [take up too much of the context](keep-context-small.md). A caller can request what a "
        "reply leaves out.",
        (
            *("full_list_bytes", "list_reply_bytes", "search_bytes", "searched_entries", "notice_bytes"),
            "largest_result_bytes",
        ),
    ),
    (
        "Tasks, questions, and timers",
        "Raise these if [tasks](work-with-slow-tools.md) run for long, if people take long "
        "[to answer](answer-questions.md), or if a caller does much at once.",
        (
            *("tasks_per_session", "task_ttl_seconds", "longest_task_ttl_seconds", "task_retention_seconds"),
            *("question_seconds", "modern_question_seconds", "questions_per_server", "questions_per_session"),
            *("requests_per_link", "timers_per_session", "longest_timer_seconds", "timer_retention_seconds"),
        ),
    ),
    (
        "Memory",
        "Lower these on a small machine. Raise them if results, events, or [log lines](see-logs.md) are dropped before "
        "callers read them.",
        (
            *("line_bytes", "task_bytes_per_session", "task_bytes_in_all"),
            *("results_per_session", "result_bytes_per_session", "result_bytes_in_all"),
            *("events_per_session", "event_seconds", "events_in_all"),
            *("notifications_per_server", "log_lines_per_server"),
            *("buffered_item_bytes", "buffered_bytes_per_server", "buffered_bytes_per_session"),
            *("requests_per_session", "requests_in_all", "recording_bytes", "recordings_in_all"),
        ),
    ),
    (
        "Scripts",
        "Raise these if [scripts](run-scripts.md) compute much or return much. Each worker is a process.",
        (
            *("script_compute_seconds", "script_memory_bytes", "script_result_bytes", "script_log_bytes"),
            *("script_workers", "script_workers_per_principal"),
        ),
    ),
)


class Undocumented(Exception):
    """Something has no words, or words are left for something that is gone."""


def main() -> int:
    """Returns the exit code: 1 if a page was not up to date."""
    parser = argparse.ArgumentParser(description="Write the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    is_check = parser.parse_args().check
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        sys.stdout.write(f"{'out of date' if is_check else 'written'}: {path.relative_to(REFERENCE.parents[1])}\n")
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages()[path], "utf-8")
    return 1 if is_check and stale else 0


def pages() -> dict[Path, str]:
    """Every page, as it should be."""
    made = {
        "tools": tools(),
        "events": events(),
        "settings": settings(),
        "errors": error_codes(),
        "limits": limits(),
        "diagrams": drawings(),
        "cli": commands(),
        "clients": clients(),
    }
    places = {REFERENCE / f"{name}.md": text for name, text in made.items()}
    places[GUIDES / "set-limits.md"] = set_limits()
    places |= {CLIENT_PAGES / f"{client.key}.md": client_page(client) for client in CLIENTS}
    written = {path: f"{MARK}\n\n{text.strip()}\n" for path, text in places.items()}
    schema = json.dumps(config_schema(), indent=2) + "\n"
    return written | {REFERENCE / SCHEMA_FILE: schema, PACKAGE / "config" / SCHEMA_FILE: schema}


# Tools.


def tools() -> str:
    text = f"""
# Tools

The {len(TOOLS)} tools that a client of emceepee sees, the same on every transport and in every protocol version.

- emceepee's own results are one JSON object, as text and as `structuredContent`. Below, `?` marks keys that may be
  missing.
- A failure is `isError: true`, a sentence with the next step, and
  `structuredContent: {{error: {{code, message, details}}}}` with one of the [error codes](errors.md).
- A tool also accepts an argument under its name in replies (`taskId` for `task_id`). `server` and `name`, and `args`
  and `arguments`, are interchangeable where a tool has only one of them, and an object may be passed as a string of
  JSON. If both names are present and differ, the call is rejected.
- `tools/list` omits arguments that few callers need, because models pay for every word of it. Every tool accepts
  them on every surface, and its entry below names them.
- Callers of 2026-07-28 over HTTP can name a session in each call, in the argument `session`: a handle of
  [`open_session`](#open_session). Only the surface `full` lists it, and only for them.
- Regular expressions are unanchored and in the [RE2 syntax](../decisions/0005-safe-regexes.md).
- Times are ISO-8601 in UTC with milliseconds.

## What every reply can carry

After its own result, a reply has up to two more text blocks. Each is one line of text and then one JSON object on a
separate line, so that no program mistakes it for the result. A reply with an error can carry them as well.

- `{{"events_since_last_response": [{{id, type, server, createdAt, data, firstId?, count?, cut?}}], more?,
  events_dropped?}}`: the [events](events.md) that no reply has carried yet. Equal notifications are one entry: `id` is
  the last one's id, `firstId` the first one's, and `count` their number. An event over 2 kB is cut, and `cut` names the
  call that returns it whole. The block has up to 8 kB; `more` counts the events for the next reply, and
  `events_dropped` counts the evicted events.
- `{{"pending_client_action": {{elicitations, sampling_requests, more?}}}}`: the open questions, in every reply
  until they are answered: `{{requestId, server, message}}`. The first reply adds the form, the link, or the messages,
  unless the result itself shows them. A message is cut at 500 characters, and five questions of each kind are shown;
  `get_elicitations` and `get_sampling_requests` return all of them in full.
- `{{"session_moved": …}}`, a sentence in place of the others: another [replica](../explanation/scaling.md) took the
  session over during the call. The result is the server's own, but the server's other messages are lost.
- `{{"state_not_saved": …}}`, a sentence after the others: the reply names a change, a task, or the handle of a large
  result, and emceepee cannot save it now, for example because the disk is full. If emceepee ends before it can, it is
  lost.

Some clients show a model only the `structuredContent` of a reply. So it carries both keys as well: beside the keys of
emceepee's own tools, and under the single key `emceepee` where a server's result has an object as its structured
content. Without notices, a result is exactly the server's own. `--notices blocks` leaves structured content unchanged.

`await_activity` returns both among its own keys, up to 64 kB, and no such blocks.

## A call that becomes a task

When `execute_tool`, `read_resource` or `get_prompt` has waited `timeout_ms`, or the server asks something, the first
block of the reply has everything for the next step: the task, the server's question with its fields, and the calls to
make. Then comes `{_shape(Promotion)}`; `structuredContent` contains the questions in full, and
only there `next` names the calls. The call continues; `get_task_result` returns its result. See
[tasks](../explanation/tasks.md).

## What clients see

Each tool has a title and *annotations*, by which clients decide when to ask their user. The table shows the sent
values: whether the tool only reads or may destroy, and differences from the protocol's other defaults (not idempotent,
in an open world). `openWorldHint: false` means that the tool reaches no server.

Some clients show a model only a few tools at first, and let it search for the others. For them, `_meta` names the tools
to load always (`anthropic/alwaysLoad`), and the words that find the others (`anthropic/searchHint`). `list_tools`
also declares that a long result should reach the model whole (`anthropic/maxResultSizeChars`).

{_table(["tool", "title", "annotations", "loaded"], [_annotation_row(tool) for tool in TOOLS])}"""
    for module in _families():
        own = [tool for tool in TOOLS if vars(module).get(tool.name) is tool]
        title = module.__name__.rpartition(".")[2].replace("_", " ").capitalize()
        text += f"\n## {title}\n\n{_first_line(module)}\n" + "".join(_tool(tool) for tool in own)
    return text


def _annotation_row(tool: Tool) -> list[str]:
    hints = [f"`{name}: {json.dumps(value)}`" for name, value in tool.effect.annotations().items()]
    loaded = "always" if tool.load.always else f"by “{tool.load.search}”"
    return [f"[`{tool.name}`](#{tool.name})", tool.title, ", ".join(hints), loaded]


def _families() -> list[ModuleType]:
    """The modules that declare tools, in the order in which their tools are listed."""
    modules = [item for item in vars(catalogue).values() if inspect.ismodule(item)]

    def first(module: ModuleType) -> int:
        return min(index for index, tool in enumerate(TOOLS) if vars(module).get(tool.name) is tool)

    families = sorted(modules, key=first)
    homeless = {tool.name for tool in TOOLS} - {name for module in families for name in vars(module)}
    if homeless:
        raise Undocumented(f"no module of the catalogue declares {sorted(homeless)}")
    return families


def _tool(tool: Tool) -> str:
    if not tool.description:
        raise Undocumented(f"the tool {tool.name} has no docstring")
    text = f"\n### {tool.name}\n\n{tool.description}\n"
    if issubclass(tool.params, ServerEntry):
        own = (tool.params.model_fields.keys() - ServerEntry.model_fields.keys()) - {"session"}
        more = [f", and `{name}` ({tool.params.model_fields[name].description})" for name in sorted(own)]
        text += f"\nArguments: the keys of [a server](settings.md#a-server){''.join(more)}.\n"
    elif tool.input_schema["properties"]:
        text += "\n" + _schema_table("argument", compact_schema(tool.params, keeps_bounds=True))
    return text + _unlisted(tool) + f"\nReturns: {_result(tool)}\n"


def _unlisted(tool: Tool) -> str:
    """The arguments that `tools/list` leaves out, by surface."""
    known = tool.input_schema["properties"].keys()
    full = [name for name in known if name in tool.unlisted]
    text = f"\nAccepted, but not listed: {_names(full)}.\n" if full else ""
    if is_listed(tool.name, Surface.LITE) and tool.brief is not None and tool.brief.arguments is not None:
        unlisted = [name for name in known if name not in tool.brief.arguments and name not in full]
        text += f"\nAlso unlisted on the surface `lite`: {_names(unlisted)}.\n" if unlisted else ""
    return text


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _result(tool: Tool) -> str:
    """The type of a tool's result in words: its shape, and the docstring of the type."""
    kind = tool.result
    if (text := _described(kind)) is not None:
        return text
    if get_origin(kind) is OwnResult:
        (kind,) = get_args(kind)
    if not is_typeddict(kind) or not kind.__doc__:
        raise Undocumented(f"the result of {tool.name} has no type of its own, or that has no docstring")
    return f"`{_shape(kind)}`. {' '.join(kind.__doc__.split())}"


def _shape(kind: Any) -> str:
    """An object by its keys; nothing for what has no keys."""
    if (text := _described(kind)) is not None:
        return text
    if get_origin(kind) is list:
        inner = _shape(get_args(kind)[0])
        return f"[{inner}]" if inner else ""
    if not is_typeddict(kind):
        return ""
    keys = [_key(name, hint) for name, hint in get_type_hints(kind, include_extras=True).items()]
    return f"{{{', '.join(sorted(keys, key=lambda key: key.partition(':')[0].endswith('?')))}}}"


def _key(name: str, hint: Any) -> str:
    is_optional = get_origin(hint) is NotRequired
    inner = _shape(get_args(hint)[0] if is_optional else hint)
    return name + ("?" if is_optional else "") + (f": {inner}" if inner else "")


def _described(kind: Any) -> str | None:
    marks = [mark.text for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, Described)]
    return marks[0] if marks else None


# Events and diagrams.


def events() -> str:
    meanings = _value_meanings(EventType)
    _no_strangers("EVENT_DATA", EVENT_DATA, meanings)
    _all_described("event's data", meanings, EVENT_DATA)
    rows = [[f"`{kind}`", _linked(meaning), _data_words(EVENT_DATA[kind])] for kind, meaning in meanings.items()]
    reasons = [[f"`{reason}`", meaning] for reason, meaning in _value_meanings(Gone).items()]
    return f"""
# Events

An event reports a change in a session. Each is delivered once: in the reply of the next tool call
(`events_since_last_response`), or by [`await_activity`](tools.md#await_activity), which waits for it.
[Exactly once](../explanation/exactly-once.md) explains how emceepee ensures that.

An event is `{{id, type, server, createdAt, data}}`. `server` is `emceepee` if no server is involved. Ids grow with
time. Below, `?` marks keys of `data` that may be missing. Values larger than `buffered_item_bytes` are cut and marked.
Log and progress messages are never events: [`get_logs`](tools.md#get_logs) returns log messages, and the task the
progress.

{_table(["type", "meaning", "`data`"], rows)}
## Reasons

A question that closes without an answer from the caller is reported as `elicitation_expired` or `sampling_expired`.

{_table(["reason", "meaning"], reasons)}"""


def _data_words(keys: Mapping[str, str]) -> str:
    return "<br>".join(f"`{key}`: {words}" for key, words in keys.items())


def _linked(meaning: str) -> str:
    """A docstring with its tools as links."""
    names = {tool.name for tool in TOOLS}
    words = re.split(r"(\w+)", meaning)
    return "".join(f"[`{word}`](tools.md#{word})" if word in names and "_" in word else word for word in words)


def drawings() -> str:
    drawn = {str(item["name"]): item for item in diagrams()}
    states = {machine.name: type(machine.initial) for machine in MACHINES}
    _no_strangers("MACHINES", states, drawn)
    _all_described("state diagram", [name for name, item in drawn.items() if _is_machine(item)], states)
    text = """
# Diagrams

Tasks, questions, connections and timers are guarded by the tables that these diagrams are drawn from: a move that is
not here cannot happen. A client can read the same with [`read_resource`](tools.md#read_resource), server `emceepee`, as
`emceepee://diagrams`.
"""
    for name, item in drawn.items():
        text += f"\n## {name}\n\n{item['description']}.\n\n```mermaid\n{item['mermaid']}\n```\n"
        if name in states:
            rows = [[f"`{state}`", meaning] for state, meaning in _value_meanings(states[name]).items()]
            text += "\n" + _table(["state", "meaning"], rows)
    return text


def _is_machine(diagram: Mapping[str, Any]) -> bool:
    return str(diagram["mermaid"]).startswith("stateDiagram")


# Settings.


def settings() -> str:
    _no_strangers("TOP_KEYS", TOP_KEYS, config_reading._TOP_KEYS)
    _all_described("key of the configuration file", config_reading._TOP_KEYS, TOP_KEYS)
    server, restart = compact_schema(ServerEntry, keeps_bounds=True), compact_schema(RestartConfig, keeps_bounds=True)
    tls = compact_schema(TlsEntry, keeps_bounds=True)
    only_in_file = ConfiguredEntry.model_fields.keys() - ServerEntry.model_fields.keys()
    _all_described("key of ConfiguredEntry", only_in_file, CONFIG_ONLY_KEYS)
    for schema, words, what in (
        (server, SERVER_KEYS, "ServerEntry"),
        (restart, RESTART_KEYS, "RestartConfig"),
        (tls, TLS_KEYS, "TlsEntry"),
    ):
        described = [name for name, item in schema["properties"].items() if "description" in item]
        _no_strangers(what, words, schema["properties"])
        _all_described(f"key of {what}", schema["properties"], [*words, *described])
    aliases = ", ".join(f"`{alias}` for `{name}`" for alias, name in config_reading._TYPE_ALIASES.items())
    inherited = ", ".join(f"`{name}`" for name in INHERITED)
    return f"""
# Settings

`emceepee --config FILE` reads a JSON file, which may have comments and trailing commas. Without the flag, the variable
`{CONFIG_VARIABLE}` is used: the path of such a file, the JSON itself, or nothing, which means no file. Without either
it is the user's own file, if there is one: `~/.config/emceepee/config.json`, which `emceepee import` and
`emceepee servers add` make.
Flags win over the file; see [the command line](cli.md).

## The file

{_table(["key", "meaning"], [[f"`{key}`", TOP_KEYS[key]] for key in config_reading._TOP_KEYS])}
A running emceepee follows changes of the file ([more](../how-to/configure-servers.md#change-the-file)).
[config.schema.json](config.schema.json) is the file as JSON Schema, for editors: name it under `$schema`. `emceepee
config schema` prints it.

One file can have all three kinds of server list; each name may occur once. Unknown keys are ignored with a warning.
References in strings are replaced: `${{NAME}}` and `${{env:NAME}}` by the variable of that name,
`${{NAME:-default}}` by the variable or the default, `${{file:PATH}}` by the text of a file (relative to the folder of
the configuration file), `${{keyring:SERVICE/NAME}}` by a secret in the platform's keyring
([more](../how-to/configure-servers.md#secrets)). A reference that cannot be resolved disables its server, and the log
names the key.

Proxies are set by the variables `{HTTPS_VARIABLE}`, `{HTTP_VARIABLE}` and `{BYPASS_VARIABLE}`, and CAs by
`--ca-bundle` or `SSL_CERT_FILE`; see how to
[reach servers through proxies](../how-to/reach-servers-through-proxies.md).

## A server

The keys of an entry are the arguments of [`add_server`](tools.md#add_server). Set either `url` or `command`. The name
`emceepee` is reserved.

{_schema_table("key", server, SERVER_KEYS)}
The file supports a few more keys, which are for the operator only, or for compatibility with other programs:

{_table(["key", "meaning"], [[f"`{key}`", words] for key, words in CONFIG_ONLY_KEYS.items()])}
`type` also accepts {aliases}.

## restartConfig

Restarts of a process that exited by itself. The count of attempts is reset once a process has run for `stable_seconds`
([limits](limits.md)). After the last attempt, the server is in `error` until `reconnect_server`.

{_schema_table("key", restart, RESTART_KEYS)}
## tls

For a `url` that begins with `https://`. Paths are relative to the folder of the configuration file. Files have the PEM
format; the next connection uses a changed file.

{_schema_table("key", tls, TLS_KEYS)}
## What a child process inherits

A stdio server inherits these variables of emceepee's own environment, if they are set, and the variables in its `env`.
It inherits nothing else: pass secrets by name.

{inherited}.
"""


# Errors, limits, command line.


def config_schema() -> dict[str, Any]:
    """The configuration file as JSON Schema, for editors. It permits unknown keys: emceepee only warns about them."""
    entry = compact_schema(ConfiguredEntry, keeps_bounds=True)
    entry["properties"] |= {
        "restartConfig": compact_schema(RestartConfig, keeps_bounds=True),
        "oauth": compact_schema(OAuthEntry, keeps_bounds=True),
        "type": {"enum": ["http", "sse", "stdio", *config_reading._TYPE_ALIASES]},
        "disabled": {"type": "boolean"},
        "serverUrl": {"type": "string"},
    }
    scopes = entry["properties"]["oauth"]["properties"]
    scopes["scopes"] = {"anyOf": [{"type": "string"}, scopes["scopes"]]}  # or separated by spaces
    words = SERVER_KEYS | CONFIG_ONLY_KEYS
    for name, item in entry["properties"].items():
        entry["properties"][name] = item | ({"description": words[name]} if name in words else {})
    named = {key: value for key, value in entry.items() if key != "required"}
    strings = {"type": "array", "items": {"type": "string"}}
    choices = {
        "notices": NOTICES,
        "nativeElicitation": NATIVE_ELICITATION,
        "surface": SURFACES,
        "logLevel": logs.LEVELS,
        "logFormat": logs.FORMATS,
        "stateSync": SYNCS,
        "secrets": SECRETS,
    }
    by_name = {"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}
    listed = {"type": "array", "items": {"$ref": "#/$defs/server", "required": ["name"]}}
    top: dict[str, Any] = {
        "servers": {"anyOf": [listed, by_name]},
        "mcpServers": by_name,
        "mcpClients": by_name,
        "limits": {
            "type": "object",
            "additionalProperties": False,
            "properties": {item.name: _limit_schema(item.name, item.type is int) for item in fields(Limits)}
            | {name: _former_limit_schema(name) for name in FORMER_LIMITS},
        },
        "roots": strings,
        "searchVectors": {"type": "string"},
        "state": {"type": "string"},
        **{key: {"enum": list(values)} for key, values in choices.items()},
    }
    _all_described("key of the schema", config_reading._TOP_KEYS, top)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{errors.DOCS_URL}reference/{SCHEMA_FILE}",
        "title": "Configuration of emceepee",
        "type": "object",
        "properties": {config_reading.SCHEMA_KEY: {"type": "string"}}
        | {key: top[key] | {"description": TOP_KEYS[key]} for key in config_reading._TOP_KEYS},
        "$defs": {"server": named},
    }


def _limit_schema(name: str, is_whole: bool) -> dict[str, Any]:
    allowed = range_of(name)
    bounds: dict[str, Any] = {"minimum": allowed.least, "maximum": allowed.most}
    kind = "integer" if is_whole else "number"
    return {"type": kind, **({"anyOf": [{"const": 0}, bounds]} if allowed.or_zero else bounds)}


def _former_limit_schema(name: str) -> dict[str, Any]:
    """Accept any value, as emceepee does, so that editors do not report a file from an earlier version as broken."""
    value = FORMER_LIMITS[name].describe(name)
    return {"deprecated": True, "description": f"This setting has no effect any more. The limit is always {value}."}


def error_codes() -> str:
    rows = [
        [f"[`{code}`](../errors/{code}.md)", meaning] for code, meaning in _value_meanings(errors.ErrorCode).items()
    ]
    return f"""
# Error codes

A failed tool returns `isError: true`. The text is a sentence for people and models; `structuredContent.error` contains
it as `{{code, message, details}}`. Programs should check `code`, which does not change. `details.help` is the address
of the page about the code, and the command line shows it.

{_table(["code", "meaning"], rows)}
## What does not fit

`details.problems` of `{errors.ErrorCode.INVALID_ARGUMENTS}` lists each mistake in the input. Each entry has

- `field`: the argument, or the field of a form, with dots as the path into an object or a list; null if no particular
  field is wrong.
- `code`: the violated keyword of JSON Schema, such as `required`, `type`, or `maximum`; null if there is none, and
  `more` if the list is cut off.
- `message`: a sentence without the name.

Entries about arguments also have `argument` and `problem`, which are older names of `field` and `message`.
"""


def limits() -> str:
    rows = [
        [
            f"`{item.name}`",
            _limit_default(item.name, item.default),
            _limit_least(item.name),
            _limit_most(item.name),
            "at once" if item.name in LIVE else "at the next start",
            _meaning(item.metadata, item.name),
        ]
        for item in fields(Limits)
    ]
    former = [[f"`{name}`", _limit_default(name, limit.value), limit.meaning] for name, limit in FORMER_LIMITS.items()]
    return f"""
# Limits

You can set every limit under `limits` in the [configuration file](settings.md).
[Set limits](../how-to/set-limits.md) says when to change them. Durations are seconds, sizes are bytes, and a year has
{LONGEST:,.0f} seconds. If a value is below the least or above the most, emceepee reports a mistake and uses the
default. Calls still work with the least values.

If you change a limit in the file of a running emceepee, the change takes effect at once or at the next start, as the
table says.

{_table(["name", "default", "least", "most", "takes effect", "meaning"], rows)}
## Fixed limits

Version 0.2.0 had settings for these limits. Their values are fixed now. A file that sets one still loads, and emceepee
logs a warning.

{_table(["former name", "value", "meaning"], former)}"""


def set_limits() -> str:
    declared = {item.name: item for item in fields(Limits)}
    listed = [name for _, _, names in LIMIT_SECTIONS for name in names]
    _no_strangers("LIMIT_SECTIONS", listed, declared)
    _all_described("limit", declared, listed)
    sections = [f"## {title}\n\n{words}\n\n{_limit_table(names)}" for title, words, names in LIMIT_SECTIONS]
    return f"""
# Set limits

Limits bound what callers and servers can make emceepee store, start, and wait for. If a default does not suit you, set
the limit under `limits` in the [configuration file](configure-servers.md):

```json
{{
  "mcpServers": {{ "files": {{ "command": "files-server" }} }},
  "limits": {{ "connect_seconds": 60, "call_seconds": 300, "log_lines_per_server": 2000 }}
}}
```

Then check the file:

```sh
emceepee config check
```

The check fails if a name is unknown, or if a value is outside its range. It also names limits of earlier versions whose
values are [fixed](../reference/limits.md#fixed-limits) now. They have no effect, and the file still loads.

A running emceepee follows the file. The [reference](../reference/limits.md) says which changes take effect at once, and
which values each limit can have.

{chr(10).join(sections)}"""


def _limit_table(names: Iterable[str]) -> str:
    declared = {item.name: item for item in fields(Limits)}
    rows = [
        [f"`{name}`", _limit_default(name, declared[name].default), _meaning(declared[name].metadata, name)]
        for name in names
    ]
    return _table(["limit", "default", "meaning"], rows)


def _limit_least(name: str) -> str:
    allowed = range_of(name)
    return f"{'0 or ' if allowed.or_zero else ''}{_limit_value(name, allowed.least)}"


def _limit_most(name: str) -> str:
    return _limit_value(name, range_of(name).most)


def _limit_value(name: str, value: float) -> str:
    """Return a value in the unit that makes it short."""
    if value == LONGEST:
        return "a year"
    return (_in_units(value) if "bytes" in name else None) or f"{value:,.15g}"


def _in_units(size: float) -> str | None:
    """Return a size such as "64 KiB", or None if no unit divides it."""
    units = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
    return next((f"{size / unit:g} {name}" for name, unit in units if size >= unit and size % unit == 0), None)


def _meaning(metadata: Mapping[str, Any], name: str) -> str:
    if not metadata.get("meaning"):
        raise Undocumented(f"the limit {name} has no meaning")
    return str(metadata["meaning"])


def _limit_default(name: str, default: Any) -> str:
    if "bytes" in name and (short := _in_units(default)) is not None:
        return f"{default} ({short})"
    return f"{default:g} s" if name.endswith("_seconds") else f"{default}"


def commands() -> str:
    parser = cli.build_parser()
    return f"""
# Command line

{_command(parser)}
Exit codes: 0 when the caller ended its input or a signal asked emceepee to stop, {cli.USAGE_ERROR} when the flags, the
configuration or the state cannot be used; then standard error says why. `emceepee state check` ends with {PROBLEM} if
it finds damage. All other commands end with {DONE} when they are done, with {FAILED} when something failed or was
declined (also if a tool reports an error to `call`), and with {USAGE} when they were called wrongly.

## What doctor finds

These are the values of `code` in `emceepee doctor --json`. They are never renamed.

{_table(["code", "what is wrong"], [[f"`{code}`", words] for code, words in _value_meanings(FindingCode).items()])}"""


def clients() -> str:
    return f"""
# Clients

The files in which clients list their servers, for `emceepee import`, `install`, and `undo`, and the entry that
`install` writes. See [how to use them](../how-to/use-with-clients.md). LangChain, LlamaIndex, Semantic Kernel, and
smolagents have [their own page](../how-to/use-with-agent-libraries.md).

{"".join(_client(client) for client in CLIENTS)}"""


def client_page(client: ClientProgram) -> str:
    """How one client gets emceepee, from nothing to undone."""
    anchor = client.title.lower().replace(" ", "-")
    project = (
        f"""
To use it in one project only, write that project's file instead:

```sh
emceepee install {client.key} --to {client.project_file}
```
"""
        if client.project_file
        else ""
    )
    return f"""
# Use emceepee with {client.title}

You need `emceepee` on this machine: [install it](../install.md) with `pipx install emceepee`.

## Put its servers behind emceepee

```sh
emceepee import {client.key} --take
emceepee install {client.key}
```

The first command moves the servers of {client.title} into emceepee's own configuration. The second writes the entry
with which {client.title} starts emceepee. Both show their changes and ask first. If you have no servers there yet, you
need only the second command.

Afterwards: {client.afterwards[0].lower()}{client.afterwards[1:]}.
{project}
## See whether it works

```sh
emceepee doctor
```

This command starts each server and reports its problems. Then ask your model:

> Which servers does emceepee have, and which tools do they have?

## Go back

```sh
emceepee undo --all
```

This restores every file byte for byte.

The [reference](../../reference/clients.md#{anchor}) shows the entry and its file. For flags and special cases, see
[use emceepee with your clients](../use-with-clients.md).
"""


def _client(client: ClientProgram) -> str:
    languages = {Format.JSON: "jsonc", Format.TOML: "toml", Format.YAML: "yaml"}
    launch = Launch(command=("/path/to/emceepee", "--config", "/home/you/.config/emceepee/config.json"))
    file = ClientFile(client=client, path=Path(f"x.{client.format}"), content=None)
    text = file.with_entry("emceepee", entry_for(client, client.words, "emceepee", launch)).decode()
    newer = f", or `{'.'.join(client.newer_path)}` where the file has that" if client.newer_path else ""
    word = "and" if client.programs else "or"
    rows = [
        ["its name in commands", f"`{client.key}`"],
        ["file on Linux", _places(client.files, word)],
        ["file on macOS", _places(client.macos_files or client.files, word)],
        ["servers are under", f"`{'.'.join(client.path)}`{newer}"],
        ["afterwards", f"{client.afterwards}."],
    ]
    if client.programs:
        each = "each belongs to a different program: `install` writes the files of installed programs, or all"
        rows.append(["several files", each])
    if client.project_file:
        rows.append(["file of a project", f"`{client.project_file}`, with `--from` and `--to`"])
    if client.folder:
        rows.append(["read besides", f"the files in `{client.folder}`"])
    if client.variable:
        rows.append(["variable for its folder", f"`{client.variable[0]}`"])
    example = f"```{languages[client.format]}\n{text.rstrip()}\n```"
    return f"## {client.title}\n\n{_table(['what', 'where'], rows)}\n{example}\n\n"


def _places(files: Iterable[str], word: str = "or") -> str:
    return f" {word} ".join(f"`{file.replace('$XDG_CONFIG_HOME', '~/.config')}`" for file in files)


def _command(parser: argparse.ArgumentParser) -> str:
    text = f"## {parser.prog}\n\n{parser.description or ''}\n\n"
    rows = []
    nested: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            nested += action.choices.values()
            continue
        names = ", ".join(f"`{name}`" for name in action.option_strings or [action.dest])
        if not action.help:
            raise Undocumented(f"{parser.prog} {names} has no help")
        values = " \\| ".join(f"`{choice}`" for choice in action.choices or ())
        rows.append([names, values or (f"`{action.metavar}`" if action.metavar else ""), action.help % vars(action)])
    return text + _table(["option", "value", "meaning"], rows) + "".join(f"\n{_command(item)}" for item in nested)


# Words and tables.


def _value_meanings(kind: type[StrEnum]) -> dict[str, str]:
    """The values of an enumeration and the docstrings under them, which Python itself does not keep."""
    tree = ast.parse(inspect.getsource(kind))
    (declared,) = tree.body
    assert isinstance(declared, ast.ClassDef)
    meanings: dict[str, str] = {}
    for statement, after in zip(declared.body, [*declared.body[1:], None], strict=True):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            meanings[str(statement.value.value)] = " ".join(str(after.value.value).split())
    _all_described(f"value of {kind.__name__}", [str(value) for value in kind], meanings)
    return meanings


def _all_described(what: str, names: Iterable[str], described: Iterable[str]) -> None:
    if missing := sorted(set(names) - set(described)):
        raise Undocumented(f"no words for this {what}: {missing}; docs/generate.py or the code must say what it is")


def _no_strangers(what: str, described: Iterable[str], names: Iterable[str]) -> None:
    if strangers := sorted(set(described) - set(names)):
        raise Undocumented(f"{what} in docs/generate.py speaks of what is gone: {strangers}")


def _schema_table(first: str, schema: dict[str, Any], words: Mapping[str, str] = MappingProxyType({})) -> str:
    """`words` come before those of the schema, which are short because models pay for them."""
    required = schema.get("required", [])
    rows = []
    for name, item in schema["properties"].items():
        default = "required" if name in required else _default(item)
        meaning = words.get(name) or item.get("description")
        if not meaning:
            raise Undocumented(f"no words for this {first}: {name}; docs/generate.py or the code must say what it is")
        rows.append([f"`{name}`", _kind(item), default, meaning])
    return _table([first, "type", "default", "meaning"], rows)


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return "" if value is None else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    bounds = [str(schema[key]) if key in schema else "" for key in ("minimum", "maximum")]
    return f"{kind} {'…'.join(bounds)}" if any(bounds) else kind


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace(chr(10), ' ') for cell in line)} |\n" for line in lines)


def _first_line(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


if __name__ == "__main__":
    raise SystemExit(main())
