"""Native questions: how a session asks a caller through the protocol instead of a tool."""

from typing import Protocol

from emceepee.state.question import Question


class Asker(Protocol):
    """One connection of a caller with native questions, in the handshake era: in 2026-07-28, a call's result asks."""

    def ask(self, question: Question, call: object | None) -> bool:
        """Ask the user. Return False if the caller does not support the question or cannot be reached now.

        `call` is the call that asked, or the newest call that may have asked.
        """
        ...

    def withdraw(self, question: Question) -> None:
        """Withdraw a question that no longer waits for an answer."""
        ...

    def complete(self, request_id: str) -> None:
        """Report that the user has completed a link."""
        ...
