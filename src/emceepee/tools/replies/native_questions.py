"""Native elicitations in both eras: the parameters of a question, and the caller's answer."""

from emceepee.errors import InvalidArguments
from emceepee.sessions.questions.questions import Questions
from emceepee.state.attendance import Attendance, after_answer, is_from_person
from emceepee.state.question import Question
from emceepee.wire.json_types import JsonObject, JsonValue

FORM, URL = "form", "url"
_ACTIONS = ("accept", "decline", "cancel")
_LINK_SCHEMES = ("https://", "http://")


def declared_modes(capability: JsonValue) -> frozenset[str]:
    """Return the modes in the capability `elicitation` that a caller declared. An empty capability means forms."""
    if not isinstance(capability, dict):
        return frozenset()
    return frozenset(mode for mode in (FORM, URL) if isinstance(capability.get(mode), dict)) or frozenset({FORM})


def mode_of(question: Question) -> str:
    return URL if question.params.get("mode") == URL else FORM


def request_params(question: Question) -> JsonObject | None:
    """Return the params of the question to the user, with the server's name, or None if no client could show it.

    Other params of the server are omitted, because they are not for the user's client.
    """
    params = question.params
    asked: JsonObject = {"mode": mode_of(question), "message": f"[{question.server}] {params.get('message', '')}"}
    if asked["mode"] == FORM:
        form = params.get("requestedSchema")
        return asked | {"requestedSchema": form} if isinstance(form, dict) else None
    url = params.get("url")
    return asked | {"url": url} if isinstance(url, str) and url.lower().startswith(_LINK_SCHEMES) else None


def read_attendance(known: Attendance, answer: JsonValue, seconds: float) -> tuple[Attendance, bool]:
    """Return the client's attendance after this answer, and whether the answer may come from a person."""
    given = answer if isinstance(answer, dict) else {}
    action = given.get("action")
    learned = after_answer(known, action, seconds, is_filled_in=bool(given.get("content")))
    return learned, is_from_person(learned, action)


def take_answer(questions: Questions, question: Question, answer: JsonValue) -> None:
    """Pass on a caller's answer. Raises: EmceepeeError, and then the question stays open."""
    given = answer if isinstance(answer, dict) else {}
    action, content = given.get("action"), given.get("content")
    if action not in _ACTIONS:
        raise InvalidArguments(f"The answer has no action; it is one of {', '.join(_ACTIONS)}.")
    if action != "accept" or mode_of(question) == URL or content is None:
        content = None  # some clients always send an empty object
    elif not isinstance(content, dict):
        raise InvalidArguments("The content of the answer is not an object.")
    questions.answer_elicitation(question.request_id, action, content)
