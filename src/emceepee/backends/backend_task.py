"""A task that a backend runs itself, as emceepee stores it. The record suffices to follow it from another process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from emceepee.wire.json_types import JsonObject


class OpenQuestion(NamedTuple):
    """A request of a 2025-11-25 backend about its task. It can be answered while the backend knows our session."""

    request_id: int | str  # of JSON-RPC
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BackendTask:
    """An immutable snapshot; an update creates another one. Its ids are secrets: they are neither logged nor shown."""

    task_id: str
    is_modern: bool
    outlives_link: bool = True  # a child process's task ends with it
    token: str | None = None  # progress token that the backend uses
    message: str | None = None  # the task's status, in the backend's words
    questions: Mapping[int | str, OpenQuestion] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<BackendTask {'2026-07-28' if self.is_modern else '2025-11-25'} questions={len(self.questions)}>"

    def is_kept_as(self, other: "BackendTask | None") -> bool:
        """Return whether a record of `other` would restore this task equally well."""
        return other is not None and (self.task_id, self.questions) == (other.task_id, other.questions)

    def to_record(self) -> JsonObject:
        return {
            "taskId": self.task_id,
            "isModern": self.is_modern,
            "token": self.token,
            "questions": [list(question) for question in self.questions.values()],
        }

    @classmethod
    def from_record(cls, record: JsonObject) -> "BackendTask":
        """Raises: KeyError, TypeError, ValueError."""
        questions = [OpenQuestion(key, method, params) for key, method, params in record["questions"]]
        return cls(
            task_id=record["taskId"],
            is_modern=record["isModern"],
            token=record["token"],
            questions={question.request_id: question for question in questions},
        )
