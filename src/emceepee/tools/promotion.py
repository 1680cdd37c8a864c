"""What a caller hears when its call has become a task."""

from emceepee.clock import iso
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.sessions.views import question_summary, task_summary
from emceepee.state.question import QuestionKind
from emceepee.state.task import Task
from emceepee.tools.declaration import Spoken


def promoted(task: Task, session: Session) -> Spoken:
    """The sentence that names the task, and what else waits on its server."""
    questions = session.questions.open(server=task.server)
    asks = f'"{task.server}" asks something first: answer what is in pending_client_action. ' if questions else ""
    sentence = (
        f"The call goes on as task {task.task_id}. {asks}"
        "get_task_result waits for its result, await_activity for whatever happens next."
    )
    elicitations = [question_summary(item) for item in questions if item.kind is QuestionKind.ELICITATION]
    value: JsonObject = {
        "proxy_task": {
            "task_id": task.task_id,
            "status": str(task.status),
            "created_at": iso(task.created_at),
            "server": task.server,
            "tool": task.tool,
        },
        "pending_on_server": {
            "server": task.server,
            "tasks": [task_summary(item) for item in session.calls.working(task.server)],
            "elicitations_for_server": elicitations,
        },
    }
    return Spoken(sentence, value)
