"""The public form of records, in tool results and in the console. The tool reference is generated from these types."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, NotRequired, TypedDict, cast

from emceepee.backends.connection import Connection
from emceepee.backends.spec import BackendSpec
from emceepee.clock import iso
from emceepee.state.connection.connection_state import ConnectionStatus
from emceepee.state.events import Event
from emceepee.state.question import Question, QuestionKind
from emceepee.state.task import Task
from emceepee.state.timer import Timer
from emceepee.wire.json_types import JsonObject

LONGEST_MESSAGE = 500  # characters of a question in its announcement


@dataclass(frozen=True, slots=True)
class Described:
    """Marks a type whose shape emceepee does not define. The reference shows this text instead."""

    text: str


ServerObject = Annotated[JsonObject, Described("{…}")]  # as the server sent it


class EventView(TypedDict):
    """An event."""

    id: str
    type: str
    server: str
    createdAt: str
    data: JsonObject


class TaskSummary(TypedDict):
    """A short description of a running task."""

    taskId: str
    toolName: str
    status: str


class TaskView(TaskSummary):
    """A task."""

    server: str
    createdAt: str
    lastUpdatedAt: str
    ttl: int
    hasResult: bool
    statusMessage: NotRequired[str]
    progress: NotRequired[JsonObject]
    error: NotRequired[str]


class QuestionSummary(TypedDict):
    """The announcement of an open question."""

    requestId: str
    server: str
    message: NotRequired[str]


PendingQuestion = Annotated[JsonObject, Described("{requestId, server, message?, …}")]  # …: the server's own fields


class QuestionView(TypedDict):
    """A complete question: the server's own fields, and the fields needed for an answer."""

    requestId: str
    server: str
    timestamp: str
    expiresAt: str
    callId: NotRequired[str]
    taskId: NotRequired[str]
    otherConversation: NotRequired[bool]


class ElicitationView(QuestionView):
    """A server's question to the user."""

    mode: str
    message: NotRequired[str]
    requestedSchema: NotRequired[ServerObject]
    url: NotRequired[str]
    elicitationId: NotRequired[str]


class ServerSummary(TypedDict):
    """An entry in the list of servers."""

    name: str
    url: str
    status: str
    connected: bool
    healthStatus: str
    disabled: NotRequired[bool]
    description: NotRequired[str]
    tags: NotRequired[list[str]]
    connectedAt: NotRequired[str]
    lastError: NotRequired[str]
    authorizationUrl: NotRequired[str]
    authorizationServer: NotRequired[str]
    reconnectAttempt: NotRequired[int]
    nextRetryMs: NotRequired[int]
    consecutiveHealthFailures: NotRequired[int]
    protocolVersion: NotRequired[str]
    tools: NotRequired[int]


class ProcessView(TypedDict):
    """A server's process."""

    pid: int
    exitCode: NotRequired[int]
    signal: NotRequired[str]
    stderrTail: NotRequired[list[str]]
    restarts: int


class ServerView(ServerSummary):
    """A server with all information that it provides about itself."""

    serverInfo: NotRequired[ServerObject]
    capabilities: NotRequired[ServerObject]
    instructions: NotRequired[str]
    process: NotRequired[ProcessView]
    subscriptions: NotRequired[list[str]]


class TimerView(TypedDict):
    """A timer."""

    timerId: str
    message: str
    durationMs: int
    interval: bool
    status: str
    fireCount: int
    createdAt: str
    expiresAt: str


def event_view(event: Event) -> EventView:
    return {
        "id": event.event_id,
        "type": str(event.type),
        "server": event.server,
        "createdAt": iso(event.created_at),
        "data": event.data,
    }


def task_summary(task: Task) -> TaskSummary:
    return {"taskId": task.task_id, "toolName": task.tool, "status": str(task.status)}


def task_view(task: Task) -> TaskView:
    view: TaskView = {
        "taskId": task.task_id,
        "server": task.server,
        "toolName": task.tool,
        "status": str(task.status),
        "createdAt": iso(task.created_at),
        "lastUpdatedAt": iso(task.updated_at),
        "ttl": _ms(task.ttl),
        "hasResult": task.result is not None,
    }
    if task.message is not None:
        view["statusMessage"] = task.message
    if task.progress is not None:
        view["progress"] = task.progress
    if task.error and task.message is not None:
        view["error"] = task.message
    return view


def question_view(question: Question, *, task_id: str | None = None) -> QuestionView:
    """Return the complete question. The backend's fields cannot overwrite emceepee's own (spoofing)."""
    own: QuestionView = {
        "requestId": question.request_id,
        "server": question.server,
        "timestamp": iso(question.created_at),
        "expiresAt": iso(question.expires_at),
    }
    if question.call_id is not None:
        own["callId"] = question.call_id
    if task_id is not None:
        own["taskId"] = task_id
    mode = {"mode": "form"} if question.kind is QuestionKind.ELICITATION else {}
    words = {key: value for key, value in question.params.items() if key not in ("_meta", "callId", "taskId")}
    return cast(QuestionView, {**own, **mode, **words, **own})


def question_summary(question: Question) -> QuestionSummary:
    summary: QuestionSummary = {"requestId": question.request_id, "server": question.server}
    if question.kind is QuestionKind.ELICITATION:
        message = str(question.params.get("message", ""))
        summary["message"] = message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
    return summary


def question_details(question: Question) -> JsonObject:
    """Return the backend's own fields, which an answer needs: the form or the link, or the messages to complete."""
    return {key: value for key, value in question.params.items() if key not in ("_meta", "requestId", "server")}


def server_summary(connection: Connection) -> ServerSummary:
    state, facts, tools = connection.state, connection.facts, connection.lists.known_tools()
    failures = connection.health.failures if connection.is_connected else 0
    optional = {
        "description": connection.spec.description,
        "tags": list(connection.spec.tags) or None,
        "connectedAt": iso(state.connected_at) if state.connected_at else None,
        "lastError": state.reason or connection.login.trouble or (connection.health.last_error if failures else None),
        "authorizationUrl": connection.login.url,
        "authorizationServer": connection.login.issuer,
        "reconnectAttempt": state.attempt or None,
        "nextRetryMs": connection.next_retry_ms(),
        "consecutiveHealthFailures": failures or None,
        "protocolVersion": facts.protocol_version if facts else None,
        "tools": None if tools is None else len(tools),
    }
    view: ServerSummary = {
        "name": connection.spec.name,
        "url": connection.spec.target.label,
        "status": str(state.status),
        "connected": connection.is_connected,
        "healthStatus": str(connection.health.status) if connection.is_connected else "unknown",
    }
    return cast(ServerSummary, view | _known(optional))


def disabled_server(spec: BackendSpec) -> ServerSummary:
    """Return the summary of a server that cannot be used until it is enabled."""
    view: ServerSummary = {
        "name": spec.name,
        "url": spec.target.label,
        "status": str(ConnectionStatus.NOT_CONNECTED),
        "connected": False,
        "healthStatus": "unknown",
        "disabled": True,
    }
    words: JsonObject = {"description": spec.description, "tags": list(spec.tags) or None}
    return cast(ServerSummary, view | _known(words))


def server_view(connection: Connection) -> ServerView:
    facts, process = connection.facts, connection.process
    optional: JsonObject = {"process": process}
    if facts is not None:
        optional = {
            "serverInfo": facts.server_info,
            "capabilities": facts.capabilities,
            "instructions": facts.instructions,
            "process": process,
            "subscriptions": connection.settings.subscriptions or None,
        }
    return cast(ServerView, server_summary(connection) | _known(optional))


def timer_view(timer: Timer) -> TimerView:
    return {
        "timerId": timer.timer_id,
        "message": timer.message,
        "durationMs": _ms(timer.duration),
        "interval": timer.repeats,
        "status": str(timer.status),
        "fireCount": timer.fire_count,
        "createdAt": iso(timer.created_at),
        "expiresAt": iso(timer.expires_at),
    }


def _known(optional: JsonObject) -> JsonObject:
    return {key: value for key, value in optional.items() if value is not None}


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
