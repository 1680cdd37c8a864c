"""What a task has come to, as the call itself would have returned it."""

from emceepee.errors import EmceepeeError, ErrorCode, TimedOut
from emceepee.sessions.session import Session
from emceepee.state.task import LET_GO, Task, TaskStatus
from emceepee.tools.content import CallResult, result_of
from emceepee.tools.declaration import Mentions


def task_outcome(task: Task, session: Session) -> CallResult:
    """Its result. Raises: EmceepeeError if it has none, and why."""
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
