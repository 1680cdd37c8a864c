"""The outcome of a task, in the form in which the call itself would have returned it."""

from emceepee.errors import EmceepeeError, ErrorCode, TimedOut
from emceepee.sessions.session import Session
from emceepee.state.task import LET_GO, Task, TaskStatus
from emceepee.surface import call_to
from emceepee.tools.content import CallResult
from emceepee.tools.declaration.declaration import Mentions
from emceepee.tools.excerpts.large_results import limited_result


async def task_outcome(task: Task, session: Session, max_bytes: int | None = None) -> CallResult:
    """Return the task's result, or a handle for a result over `max_bytes`. Raises: EmceepeeError with the reason."""
    if task.result is not None:
        mentions = Mentions(ended_task=task.task_id)
        return await limited_result(task.method, task.result, max_bytes, session, mentions)
    if task.error is not None:
        raise EmceepeeError(
            f"Task {task.task_id} failed: {task.error['message']}",
            code=ErrorCode(task.error["code"]),
            details=task.error["details"] | {"taskId": task.task_id},
        )
    if task.status is TaskStatus.COMPLETED:
        raise EmceepeeError(
            f"Task {task.task_id} completed, but {LET_GO}: the results of finished tasks take at most "
            f"{session.limits.task_bytes_per_session} bytes per session. Call {call_to('execute_tool')} "
            "again if you still need it.",
            code=ErrorCode.LIMIT_EXCEEDED,
            details={"taskId": task.task_id, "status": str(task.status)},
        )
    if not task.has_ended:
        raise TimedOut(
            f"emceepee is stopping. Task {task.task_id} continues at its server: call "
            f"{call_to('get_task_result')} again.",
            details={"taskId": task.task_id},
        )
    words = {TaskStatus.CANCELLED: "was cancelled", TaskStatus.EXPIRED: "expired: it outlived its time to live"}
    raise EmceepeeError(
        f"Task {task.task_id} {words[task.status]}; it has no result. Call {call_to('execute_tool')} again if you "
        "still need it.",
        code=ErrorCode.TIMEOUT if task.status is TaskStatus.EXPIRED else ErrorCode.EXECUTION_FAILED,
        details={"taskId": task.task_id, "status": str(task.status)},
    )
