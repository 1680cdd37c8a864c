"""The upward end of a link: remembers what it heard, and answers as the test tells it to."""

import asyncio

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import RpcError
from emceepee.wire.json_types import JsonObject


class ScriptedListener:
    """Questions in `answers` are answered at once (an exception is raised); all others wait until withdrawn."""

    def __init__(self, **answers: JsonObject | Exception) -> None:
        self.answers = answers
        self.questions: list[tuple[str, JsonObject, object | None]] = []
        self.seconds: list[float | None] = []  # that each of them can wait
        self.withdrawn: list[str] = []
        self.heard: list[tuple[str, JsonObject, object | None]] = []
        self.lines: list[tuple[str, str]] = []
        self.tasks: list[BackendTask] = []
        self.takes: asyncio.Task[None] | None = None  # who answers what is to outlive the link

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        self.questions.append((method, params, origin))
        self.seconds.append(seconds)
        answer = self.answers.get(method)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.withdrawn.append(method)
            raise
        raise RpcError({"code": 0, "message": "never"})

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        self.heard.append((method, params, origin))

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return self.takes

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        self.tasks.append(task)

    def handle_output(self, line: str, source: str) -> None:
        self.lines.append((line, source))
