"""A large result that is stored so that the caller can read it in parts."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """The metadata of a result; its text is in the store, or in memory if it is not stored."""

    handle: str
    size: int  # bytes
    chunks: int
    is_json: bool
    is_stored: bool
    created_at: datetime
