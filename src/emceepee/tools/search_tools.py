"""The tool that searches servers' entries and returns short signatures."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.codemode.python_names import module_names
from emceepee.search.documents import Document, EntryType
from emceepee.search.shapes import ObservedShapes
from emceepee.search.signatures import signature
from emceepee.search.text import one_line
from emceepee.sessions.session import Session
from emceepee.sessions.views import ServerObject
from emceepee.surface import call_to
from emceepee.tools.declaration.declaration import AnyServer, Params, tool
from emceepee.tools.declaration.hints import CORE, READS
from emceepee.tools.entry_pages import ListingError
from emceepee.tools.excerpts.patterns import compile_pattern
from emceepee.tools.server_tags import TAG, with_tag
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from emceepee.sessions.lists.entry_search import EntrySearch

MOST_RESULTS = 50
LONGEST_QUERY = 1000
_TYPES = {
    "tools": (EntryType.TOOL,),
    "resources": (EntryType.RESOURCE, EntryType.TEMPLATE),
    "prompts": (EntryType.PROMPT,),
    "servers": (EntryType.SERVER,),
    "all": tuple(EntryType),
}
_SCHEMAS = ("inputSchema", "outputSchema", "arguments")
_SIGNS = (".*", ".+", "^", "$", "|", "\\")  # of a regular expression
_WORDS_ROOM = 400  # bytes for the note about omitted results
MOST_ERRORS, LONGEST_MESSAGE = 10, 300


class CodemodeSearch(Params):
    """Parameters: the query and its filters."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, description="Words, or /regex/ on names")
    type: Literal["tools", "resources", "prompts", "servers", "all"] = Field("tools", description="What to find")
    server: AnyServer = None
    includeSchemas: bool = Field(False, description="Whole schemas, too")
    limit: int = Field(10, ge=1, le=MOST_RESULTS, description="Most results")
    tag: str | None = Field(None, description=TAG)


class Found(TypedDict):
    """A matching entry. If a tool was called before, its `signature` ends with the observed shape of its result.
    `module` is the server's name in scripts and in the signature, if it differs from `server`."""

    type: NotRequired[str]
    server: str
    module: NotRequired[str]
    name: str
    signature: str
    inputSchema: NotRequired[ServerObject]
    outputSchema: NotRequired[ServerObject]
    arguments: NotRequired[list[ServerObject]]


class SearchResults(TypedDict):
    """Results, the best first. `note` describes omitted results and how to get them. `errors` names the servers that
    could not return their entries."""

    results: list[Found]
    note: NotRequired[str]
    errors: NotRequired[list[ListingError]]


@tool(title="Find servers' tools", effect=READS, load=CORE, unlisted=("tag",))
async def codemode_search(params: CodemodeSearch, session: Session) -> SearchResults:
    """Find servers' tools, resources or prompts by what they do, in your own words. Results are signatures, the best
    first: server.tool(needed, optional?).
    """
    search, shapes = session.search(), session.observe_shapes()
    known = session.connections
    asked = known if params.server is None else [session.connection(params.server)]
    asked = with_tag(asked, params.tag)
    refreshed = await search.refresh(known, asked, _TYPES[params.type])
    is_narrow = params.server is not None or params.tag is not None
    found = _find(params, search, {connection.spec.name for connection in asked} if is_narrow else None)
    answer = _Answer(session.limits.search_bytes - _WORDS_ROOM)
    if refreshed.errors:
        answer.value["errors"] = [_shortened(error) for error in refreshed.errors[:MOST_ERRORS]]
        answer.room -= len(encode(answer.value["errors"]))
    modules = module_names(connection.spec.name for connection in known)
    for document in found[: params.limit]:
        if not answer.add(_entry(document, shapes, params, modules)):
            break
    unnamed = max(len(refreshed.errors) - MOST_ERRORS, 0)
    if words := answer.left_out(len(found), params, refreshed.left_out, unnamed):
        answer.value["note"] = words
    return answer.value


class _Answer:
    """The results that fit into `room` bytes."""

    def __init__(self, room: int) -> None:
        self.room = room  # bytes
        self.value: SearchResults = {"results": []}
        self._bare = 0  # results whose schemas had no room

    def add(self, entry: Found) -> bool:
        """Add the entry, without its schemas if they do not fit. Return False if there is no room even then."""
        size = len(encode(entry)) + 1
        if size > self.room and any(key in entry for key in _SCHEMAS):
            entry = cast(Found, {key: value for key, value in entry.items() if key not in _SCHEMAS})
            self._bare += 1
            size = len(encode(entry)) + 1
        if size > self.room:
            return False
        self.room -= size
        self.value["results"].append(entry)
        return True

    def left_out(self, found: int, params: CodemodeSearch, not_indexed: int, unnamed: int) -> str:
        """Return how many results are not shown, and how to see them. `unnamed` servers are missing in `errors`."""
        words = []
        if unnamed:
            words.append(f"{unnamed} more servers could not be queried; {call_to('list_servers')} shows the reasons.")
        if (rest := found - len(self.value["results"])) > 0:
            how = "use more words, or name a server"
            if len(self.value["results"]) == params.limit < MOST_RESULTS:
                how = f"raise limit (at most {MOST_RESULTS}), {how}"
            words.append(f"{rest} less relevant results are not shown: {how}.")
        if self._bare:
            words.append(f"{self._bare} schemas did not fit: use a smaller limit.")
        if not_indexed:
            words.append(f"{not_indexed} entries are over the size limit of the search.")
        if not found:
            words.append("No results: try other words, fewer words, or type=all.")
        return " ".join(words)


def _find(params: CodemodeSearch, search: "EntrySearch", servers: Collection[str] | None) -> list[Document]:
    """Raises: InvalidArguments if the query is an invalid regular expression."""
    types, index = _TYPES[params.type], search.index
    if (expression := _expression(params.query)) is None:
        return [hit.document for hit in index.search(params.query, types, servers=servers)]
    pattern = compile_pattern("query", expression)
    documents = index.documents(types, servers)
    return [document for document in documents if pattern.search(f"{document.server}.{document.name}")]


def _expression(query: str) -> str | None:
    """Return the regular expression if the query is one: between slashes, or one word with special characters."""
    query = query.strip()
    if len(query) > 2 and query[0] == query[-1] == "/":
        return query[1:-1]
    is_one_word = not any(letter.isspace() for letter in query)
    return query if is_one_word and any(sign in query for sign in _SIGNS) else None


def _entry(document: Document, shapes: ObservedShapes, params: CodemodeSearch, modules: Mapping[str, str]) -> Found:
    is_tool = document.type is EntryType.TOOL
    shape = shapes.find(document.server, document.name) if is_tool else None
    module = modules.get(document.server, document.server) if is_tool else document.server
    entry: Found = {"server": document.server, "name": document.name, "signature": signature(document, shape, module)}
    if module != document.server:
        entry["module"] = module
    if len(_TYPES[params.type]) > 1:
        entry["type"] = str(document.type)
    if params.includeSchemas:
        entry |= cast(Found, {key: document.entry[key] for key in _SCHEMAS if key in document.entry})
    return entry


def _shortened(error: JsonObject) -> ListingError:
    return {"server": error["server"], "message": one_line(str(error["message"]), LONGEST_MESSAGE)}
