"""How records look from outside: to a caller, and to a person."""

from datetime import timedelta

from emceepee.backends.connection import Connection
from emceepee.clock import iso
from emceepee.json_types import JsonObject
from emceepee.state.events import Event
from emceepee.state.question import Question, QuestionKind
from emceepee.state.task import Task
from emceepee.state.timer import Timer

LONGEST_MESSAGE = 500  # of a question, where it is only announced


def event_view(event: Event) -> JsonObject:
    return {
        "id": event.event_id,
        "type": str(event.type),
        "server": event.server,
        "createdAt": iso(event.created_at),
        "data": event.data,
    }


def task_summary(task: Task) -> JsonObject:
    """A line among what is at work."""
    return {"taskId": task.task_id, "toolName": task.tool, "status": str(task.status)}


def task_view(task: Task) -> JsonObject:
    optional = {
        "statusMessage": task.message,
        "progress": task.progress,
        "error": task.message if task.error else None,
    }
    return {
        "taskId": task.task_id,
        "server": task.server,
        "toolName": task.tool,
        "status": str(task.status),
        "createdAt": iso(task.created_at),
        "lastUpdatedAt": iso(task.updated_at),
        "ttl": _ms(task.ttl),
        "hasResult": task.result is not None,
    } | {key: value for key, value in optional.items() if value is not None}


def question_view(question: Question, *, task_id: str | None = None) -> JsonObject:
    """A question in full: the backend's own words, and what is needed to answer. None of them can pass for ours."""
    own: JsonObject = {
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
    return own | mode | words | own


def question_summary(question: Question) -> JsonObject:
    """A line that says that someone waits."""
    line: JsonObject = {"requestId": question.request_id, "server": question.server}
    if question.kind is QuestionKind.ELICITATION:
        message = str(question.params.get("message", ""))
        line["message"] = message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
    return line


def question_details(question: Question) -> JsonObject:
    """What is needed to answer, in the backend's own words: the form or the link, or the messages to complete."""
    return {key: value for key, value in question.params.items() if key not in ("_meta", "requestId", "server")}


def server_summary(connection: Connection) -> JsonObject:
    """A line of `list_servers`."""
    state, facts, tools = connection.state, connection.facts, connection.known_tools()
    failures = connection.health.failures if connection.is_connected else 0
    optional = {
        "description": connection.spec.description,
        "connectedAt": iso(state.connected_at) if state.connected_at else None,
        "lastError": state.reason or (connection.health.last_error if failures else None),
        "reconnectAttempt": state.attempt or None,
        "nextRetryMs": connection.next_retry_ms(),
        "consecutiveHealthFailures": failures or None,
        "protocolVersion": facts.protocol_version if facts else None,
        "tools": None if tools is None else len(tools),
    }
    return {
        "name": connection.spec.name,
        "url": connection.spec.target.label,
        "status": str(state.status),
        "connected": connection.is_connected,
        "healthStatus": str(connection.health.status) if connection.is_connected else "unknown",
    } | {key: value for key, value in optional.items() if value is not None}


def server_view(connection: Connection) -> JsonObject:
    """One server with everything it told of itself."""
    facts = connection.facts
    if facts is None:
        process = connection.process
        return server_summary(connection) | ({} if process is None else {"process": process})
    optional = {
        "instructions": facts.instructions,
        "process": connection.process,
        "subscriptions": connection.subscriptions or None,
    }
    return (
        server_summary(connection)
        | {
            "serverInfo": facts.server_info,
            "capabilities": facts.capabilities,
        }
        | {key: value for key, value in optional.items() if value is not None}
    )


def timer_view(timer: Timer) -> JsonObject:
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


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
