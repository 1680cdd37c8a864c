"""Detect from a client's answers whether a person reads the questions that it receives."""

from enum import StrEnum

# A person needs longer to read a form and to reach a key. Agents without a person dismissed forms after 1 to 52 ms.
READING_SECONDS = 1.0
_DISMISSALS = ("decline", "cancel")


class Attendance(StrEnum):
    """The attendance of one client."""

    UNKNOWN = "unknown"
    """The client has not answered yet, or only dismissed questions at a person's pace."""
    ATTENDED = "attended"
    """The client filled in a form, or accepted a question at a person's pace."""
    UNATTENDED = "unattended"
    """The client dismissed a question before a person can have read it."""


def after_answer(known: Attendance, action: object, seconds: float, *, is_filled_in: bool) -> Attendance:
    """Return the client's attendance after an answer with this action, `seconds` after the question."""
    # Two processes may have timed the answer: the clock of the process that asked may be slightly ahead.
    is_unread = abs(seconds) < READING_SECONDS
    if action == "accept":
        # Codex with full access accepts a form without fields after 1 ms and declines the next form that has fields.
        return known if is_unread and not is_filled_in else Attendance.ATTENDED
    is_unread_dismissal = is_unread and action in _DISMISSALS
    return Attendance.UNATTENDED if is_unread_dismissal and known is Attendance.UNKNOWN else known


def is_from_person(known: Attendance, action: object) -> bool:
    """Return whether an answer counts as a person's, given the attendance of its client.

    A slow dismissal from an unattended client still counts as automatic.
    """
    return action not in _DISMISSALS or known is not Attendance.UNATTENDED
