"""How a session asks a caller who takes questions by the protocol's own means, and not only by tools."""

from typing import Protocol

from emceepee.state.question import Question


class Asker(Protocol):
    """One connection of such a caller. It is of the handshake era: in 2026-07-28 it is a call's result that asks."""

    def ask(self, question: Question, call: object | None) -> bool:
        """Put it to the user. False if the caller does not take such a question, or cannot be reached now.

        `call` is the one that asked, or the newest of those that may have.
        """
        ...

    def withdraw(self, question: Question) -> None:
        """It waits for no answer any more."""
        ...

    def complete(self, request_id: str) -> None:
        """What the user was sent to with a link is over."""
        ...
