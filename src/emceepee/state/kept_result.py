"""A large result that is kept to be read in parts."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """What is known of it; its text is in the store, or in memory if it is not stored."""

    handle: str
    size: int  # bytes
    chunks: int
    is_json: bool
    is_stored: bool
    created_at: datetime
