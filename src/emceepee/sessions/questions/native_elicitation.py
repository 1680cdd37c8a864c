"""Ask callers natively through the protocol, in addition to waiting for an answer by tool."""

from collections.abc import Iterable, Sequence

from emceepee.sessions.asker import Asker
from emceepee.sessions.call import Call
from emceepee.state.question import ElicitationStatus, Question, QuestionKind


class NativeElicitation:
    """One per session with a caller that supports native questions. The first answer counts.

    A question goes to one caller: the caller whose call asked. A link ends in two steps: the user agrees to open it,
    which answers the question, and later the server may report that the user has finished there.
    """

    __slots__ = ("_asker_of", "_askers", "_links", "_most_links")

    def __init__(self, *, most_links: int) -> None:
        self._askers: list[Asker] = []
        self._asker_of: dict[str, Asker] = {}  # the caller that was asked, by question id
        self._links: dict[tuple[str, str], tuple[Asker, str]] = {}  # by server and the server's elicitation id
        self._most_links = most_links

    def add(self, asker: Asker) -> None:
        self._askers.append(asker)

    def remove(self, asker: Asker) -> None:
        """Remove a caller whose connection has closed. Tools can still answer its questions."""
        self._askers = [other for other in self._askers if other is not asker]
        self._asker_of = {key: other for key, other in self._asker_of.items() if other is not asker}
        self._links = {key: link for key, link in self._links.items() if link[0] is not asker}

    def ask(self, question: Question, calls: Sequence[Call]) -> Asker | None:
        """Ask the caller of one of these calls, or any caller if there are none. Return the asked caller, if any."""
        callers: Iterable[tuple[Asker | None, Call | None]]
        callers = (
            ((call.asker, call) for call in reversed(calls)) if calls else ((asker, None) for asker in self._askers)
        )
        return next(
            (asker for asker, call in callers if asker is not None and self.ask_at(asker, question, call)), None
        )

    def ask_at(self, asker: Asker, question: Question, call: Call | None = None) -> bool:
        """Ask this caller. Return False if it does not support the question or cannot be reached now."""
        if question.kind is not QuestionKind.ELICITATION or not asker.ask(question, call):
            return False
        self._asker_of[question.request_id] = asker
        self._remember_link(question, asker)
        return True

    def _remember_link(self, question: Question, asker: Asker) -> None:
        elicitation_id = question.params.get("elicitationId")
        if question.params.get("mode") == "url" and isinstance(elicitation_id, str):
            self._links[question.server, elicitation_id] = asker, question.request_id
            if len(self._links) > self._most_links:
                del self._links[next(iter(self._links))]

    def is_asked(self, question: Question) -> bool:
        return question.request_id in self._asker_of

    def give_up(self, request_id: str) -> None:
        """Stop waiting for the native answer after an unusable one. From now on only tools can answer."""
        self._asker_of.pop(request_id, None)

    def on_closed(self, question: Question) -> None:
        """Forget a closed question, and withdraw it from the caller that was asked."""
        asker = self._asker_of.pop(question.request_id, None)
        if asker is None:
            return
        asker.withdraw(question)
        if question.status is not ElicitationStatus.ACCEPTED:
            self._links = {key: link for key, link in self._links.items() if link[1] != question.request_id}

    def complete(self, server: str, elicitation_id: object) -> None:
        """Notify the caller that the user has completed a link."""
        link = self._links.pop((server, elicitation_id), None) if isinstance(elicitation_id, str) else None
        if link is not None:
            asker, request_id = link
            asker.complete(request_id)
