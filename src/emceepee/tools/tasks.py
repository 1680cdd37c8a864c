"""Tools for calls that became tasks."""

from typing import Annotated, TypedDict, cast

from pydantic import Field

from emceepee.errors import EmceepeeError, ErrorCode, TimedOut
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.sessions.views import Described, ElicitationView, TaskView, question_view, task_view
from emceepee.state.question import QuestionKind
from emceepee.state.task import LET_GO, Task, TaskStatus
from emceepee.tools.content import CallResult, result_of
from emceepee.tools.declaration import AnyServer, Mentions, Params, tool
from emceepee.tools.execution import seconds
from emceepee.tools.heartbeat import heartbeat
from emceepee.tools.hints import CORE, READS_RECORDS, Effect, found_by
from emceepee.tools.limited import LimitedBy
from emceepee.tools.request_context import RequestContext

RESULT_WAIT = LimitedBy(
    most="longest_task_ttl_seconds",
    names="quiet_call_seconds",
    description="Longest wait; default {}, with a progress token the task's time left",
)


class ListTasks(Params):
    """Which tasks."""

    server: AnyServer = None
    status: TaskStatus | None = Field(None, description="Only these")
    include_completed: bool = Field(False, description="Also ended ones")


class OneTask(Params):
    """A task."""

    task_id: str = Field(description="From a promotion or list_tasks")


class GetTaskResult(OneTask):
    """A task's result, and how long to wait for it."""

    timeout_ms: Annotated[int | None, RESULT_WAIT] = RESULT_WAIT.field(None)


FinishedCall = Annotated[
    CallResult,
    Described(
        "What the call itself would have returned, unchanged. A task that failed, was cancelled or has expired is an "
        "error that says so. If it still works when `timeout_ms` has passed, the error is `TOOL_ERR_TIMEOUT`, and the "
        "task goes on."
    ),
]


class TaskList(TypedDict):
    """Those at work, or those that were asked for."""

    tasks: list[TaskView]


class TaskInFull(TaskView):
    """A task, and what it was called with."""

    toolArgs: JsonObject


class OneTaskView(TypedDict):
    """The questions are those of its server."""

    task: TaskInFull
    pending_elicitations: list[ElicitationView]


class Cancellation(TypedDict):
    """`success` is false if the task had ended already."""

    success: bool
    message: str


@tool(title="List tasks", effect=READS_RECORDS, load=found_by("background slow calls tasks"))
async def list_tasks(params: ListTasks, session: Session) -> TaskList:
    """List the calls that became tasks."""

    def wanted(task: Task) -> bool:
        shown = params.include_completed or params.status is not None or not task.has_ended
        return shown and params.server in (None, task.server) and params.status in (None, task.status)

    return {"tasks": [task_view(task) for task in session.tasks.all() if wanted(task)]}


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


@tool(title="Get a task's result", effect=READS_RECORDS, load=CORE)
async def get_task_result(params: GetTaskResult, session: Session, caller: RequestContext) -> FinishedCall:
    """Wait for a task's result and return it; readable for some minutes. After timeout_ms an error: the task goes on,
    call again.
    """
    timeout = seconds(params.timeout_ms)
    if timeout is None and caller.on_progress is None:
        timeout = session.limits.quiet_call_seconds
    with session.waiting(), heartbeat(caller, session.clock, timeout):
        task = await session.tasks.wait_until_finished(params.task_id, timeout)
    return finished_result(task, session)


def finished_result(task: Task, session: Session) -> CallResult:
    """What a task that has ended came to. Raises: EmceepeeError."""
    if task.result is not None:
        return result_of(task.method, task.result, Mentions(ended_task=task.task_id))
    if task.error is not None:
        raise EmceepeeError(
            f"Task {task.task_id} failed: {task.error['message']}",
            code=ErrorCode(task.error["code"]),
            details=task.error["details"] | {"taskId": task.task_id},
        )
    if task.status is TaskStatus.COMPLETED:
        raise EmceepeeError(
            f"Task {task.task_id} completed, but {LET_GO}: those of finished tasks take at most "
            f"{session.limits.task_bytes_per_session} bytes per session. Call execute_tool again if you still need it.",
            code=ErrorCode.LIMIT_EXCEEDED,
            details={"taskId": task.task_id, "status": str(task.status)},
        )
    if not task.has_ended:
        raise TimedOut(
            f"emceepee is stopping. Task {task.task_id} goes on at its server: call get_task_result again.",
            details={"taskId": task.task_id},
        )
    words = {TaskStatus.CANCELLED: "was cancelled", TaskStatus.EXPIRED: "expired: it outlived its time to live"}
    raise EmceepeeError(
        f"Task {task.task_id} {words[task.status]}; it has no result. Call execute_tool again if you still need it.",
        code=ErrorCode.TIMEOUT if task.status is TaskStatus.EXPIRED else ErrorCode.EXECUTION_FAILED,
        details={"taskId": task.task_id, "status": str(task.status)},
    )


@tool(title="Cancel a task", effect=Effect(), load=found_by("stop abort background call"))
async def cancel_task(params: OneTask, session: Session) -> Cancellation:
    """Cancel a working task; its server is told."""
    before = session.tasks.get(params.task_id)
    if before.has_ended:
        return {"success": False, "message": f"Task {params.task_id} is {before.status} already."}
    session.calls.cancel_task(params.task_id)
    return {"success": True, "message": f"Task {params.task_id} was cancelled."}
