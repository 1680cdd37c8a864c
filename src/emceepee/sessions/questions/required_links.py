"""Questions for links that the user must open before a server serves a call.

No call waits for their answers: the call has failed, and the caller repeats it.
"""

from contextlib import suppress

from emceepee.errors import LinksNeeded
from emceepee.sessions.call import Call
from emceepee.sessions.questions.questions import Questions, TooManyQuestions
from emceepee.state.question import QuestionKind


def ask_to_open(questions: Questions, call: Call, error: LinksNeeded, *, seconds: float) -> None:
    """Ask the caller to open each link, unless it is asked already."""
    asked = {question.params.get("url") for question in questions.open(QuestionKind.ELICITATION, call.server)}
    for link in error.links:
        if link["url"] in asked:
            continue
        with suppress(TooManyQuestions):  # the error names the link as well
            question = questions.ask(call.server, QuestionKind.ELICITATION, link, call_id=None, seconds=seconds)
            if questions.native is not None and call.asker is not None:
                questions.native.ask_at(call.asker, question, call)
