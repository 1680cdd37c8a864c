"""The operator's options for notifying callers of events and of servers' questions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeOptions:
    """Options that every session of an installation shares. They can change at runtime."""

    structured: bool | None = None  # notices in structured content; None: only for clients that do not show both copies
    asks_natively: bool = True  # whether clients that declare elicitation receive native elicitation requests
    trusts_dismissals: bool = False  # whether a dismissal counts if it came faster than a person can read
