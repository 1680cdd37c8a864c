"""How callers hear of news and of servers' questions, as the operator decided."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeOptions:
    """The same for every session of an installation. They can change while it runs."""

    structured: bool | None = None  # whether structured content has notices; None: unless a client shows both copies
    asks_natively: bool = True  # whether clients that declare elicitation are asked by it
    trusts_dismissals: bool = False  # whether a dismissal counts that came faster than a person reads
