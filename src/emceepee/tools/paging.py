"""Long lists in pages, with a cursor that only emceepee needs to understand."""

import base64
import binascii
from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from emceepee.errors import InvalidArguments
from emceepee.json_types import JsonObject
from emceepee.sessions.listing import Listing
from emceepee.sessions.views import Described
from emceepee.tools.declaration import Params


class Paged(Params):
    """For tools whose lists can be long."""

    limit: int | None = Field(None, ge=1, description="Per page")
    cursor: str | None = Field(None, description="nextCursor")


ListedEntry = Annotated[JsonObject, Described("{server, …as the server sent it}")]


class ListingError(TypedDict):
    """A server that could not be asked."""

    server: str
    message: str


class Page(TypedDict):
    """What every list has besides its entries."""

    nextCursor: NotRequired[str]
    errors: NotRequired[list[ListingError]]


def page(key: str, listing: Listing, params: Paged) -> JsonObject:
    """One page of the entries under `key`, where to go on, and what could not be had."""
    start = _offset(params.cursor)
    end = len(listing.entries) if params.limit is None else start + params.limit
    result: JsonObject = {key: listing.entries[start:end]}
    if end < len(listing.entries):
        result["nextCursor"] = base64.urlsafe_b64encode(b"%d" % end).decode()
    if listing.errors:
        result["errors"] = listing.errors
    return result


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        return max(int(base64.urlsafe_b64decode(cursor)), 0)
    except (ValueError, binascii.Error):
        raise InvalidArguments("cursor: pass on the nextCursor of an earlier reply, unchanged.") from None
