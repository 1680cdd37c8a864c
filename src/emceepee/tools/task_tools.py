"""Tools for calls that became tasks."""

from typing import Annotated, TypedDict, cast

from pydantic import Field

from emceepee.sessions.session import Session
from emceepee.sessions.views import Described, ElicitationView, TaskView, question_view, task_view
from emceepee.state.question import QuestionKind
from emceepee.state.task import Task, TaskStatus
from emceepee.tools.content import CallResult
from emceepee.tools.declaration.argument_limits import LimitedBy
from emceepee.tools.declaration.declaration import AnyServer, Brief, Params, tool
from emceepee.tools.declaration.hints import CORE, READS_RECORDS, ToolEffect, found_by
from emceepee.tools.entry_pages import PAGING, Detailed, Entries, Rest, fields, page
from emceepee.tools.execution_tools import Bounded, seconds
from emceepee.tools.replies.heartbeat import heartbeat
from emceepee.tools.replies.task_outcome import task_outcome
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject

RESULT_WAIT = LimitedBy(
    most="longest_task_ttl_seconds",
    names="quiet_call_seconds",
    description="Longest wait; default {}, with a progress token the task's time left",
)


class ListTasks(Detailed):
    """Parameters: the selected tasks."""

    server: AnyServer = None
    status: TaskStatus | None = Field(None, description="Only these")
    include_completed: bool = Field(False, description="Also ended ones")


class OneTask(Params):
    """Parameters: one task."""

    task_id: str = Field(description="Its taskId")


class GetTaskResult(OneTask, Bounded):
    """Parameters: one task, and how long to wait for its result."""

    timeout_ms: Annotated[int | None, RESULT_WAIT] = RESULT_WAIT.field(None)


FinishedCall = Annotated[
    CallResult,
    Described(
        "The result that the call itself would have returned, unchanged. If the task failed, was cancelled, or has "
        "expired, an error with the reason. If the task is still running after `timeout_ms`, the error is "
        "`TOOL_ERR_TIMEOUT`, and the task continues."
    ),
]


TASKS = Entries("list_tasks", "tasks", "taskId", fields("toolName", "status"))


class TaskList(Rest):
    """Working tasks, or the requested tasks."""

    tasks: list[TaskView]


class TaskInFull(TaskView):
    """A task and the arguments of its call."""

    toolArgs: JsonObject


class OneTaskView(TypedDict):
    """The task, and the open questions of its server."""

    task: TaskInFull
    pending_elicitations: list[ElicitationView]


class Cancellation(TypedDict):
    """`success` is false if the task had ended already."""

    success: bool
    message: str


@tool(title="List tasks", effect=READS_RECORDS, load=found_by("background slow calls tasks"), unlisted=PAGING)
async def list_tasks(params: ListTasks, session: Session) -> TaskList:
    """List the calls that became tasks."""

    def wanted(task: Task) -> bool:
        shown = params.include_completed or params.status is not None or not task.has_ended
        return shown and params.server in (None, task.server) and params.status in (None, task.status)

    entries = [cast(JsonObject, task_view(task)) for task in session.tasks.all() if wanted(task)]
    return cast(TaskList, page(entries, params, TASKS, room=session.limits.list_reply_bytes))


@tool(title="Show a task", effect=READS_RECORDS, load=found_by("background task status progress"))
async def get_task(params: OneTask, session: Session) -> OneTaskView:
    """One task: status, progress, and what its server asks."""
    task = session.tasks.get(params.task_id)
    questions = session.questions.open(QuestionKind.ELICITATION, task.server)
    return {
        "task": {**task_view(task), "toolArgs": task.arguments},
        "pending_elicitations": cast(
            list[ElicitationView], [question_view(item, task_id=session.tasks.id_for(item)) for item in questions]
        ),
    }


@tool(
    title="Get a task's result",
    effect=READS_RECORDS,
    load=CORE,
    brief=Brief(
        "Wait for a task's result and return it. After timeout_ms an error: the task goes on, call again.",
        words={"task_id": "From the reply", "timeout_ms": "Longest wait"},
    ),
)
async def get_task_result(params: GetTaskResult, session: Session, caller: RequestContext) -> FinishedCall:
    """Wait for a task's result and return it; readable for some minutes. After timeout_ms an error: the task goes on,
    call again.
    """
    timeout = seconds(params.timeout_ms)
    if timeout is None and caller.on_progress is None:
        timeout = session.limits.quiet_call_seconds
    with session.activity.waiting(), heartbeat(caller, session.clock, timeout):
        task = await session.tasks.wait_until_finished(params.task_id, timeout)
    return await task_outcome(task, session, params.max_bytes)


@tool(title="Cancel a task", effect=ToolEffect(), load=found_by("stop abort background call"), is_durable=True)
async def cancel_task(params: OneTask, session: Session) -> Cancellation:
    """Cancel a working task, and notify its server."""
    before = session.tasks.get(params.task_id)
    if before.has_ended:
        return {"success": False, "message": f"Task {params.task_id} is {before.status} already."}
    session.calls.cancel_task(params.task_id)
    return {"success": True, "message": f"Task {params.task_id} was cancelled."}
