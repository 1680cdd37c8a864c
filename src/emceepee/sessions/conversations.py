"""The conversations of a session that several windows of one client share, because the client names no session.

A conversation is all requests of one window, chat, or run of a client. A request identifies it, best first:

    an id in `_meta`      of clients that send one
    the connection        all requests on one belong to one conversation
    the request's number  a new connection continues the conversation whose last number is just before its first,
                          unless that one has an idle connection: its client would have used it
    the client            its name, version, and user agent: all that is known behind a proxy
"""

from dataclasses import dataclass, field

from emceepee.state.client_line import ClientLine
from emceepee.wire.json_types import JsonObject

# Codex; GitHub Copilot in VS Code; ChatGPT.
META_KEYS = ("threadId", "vscode.conversationId", "openai/session")
LONGEST_ID = 200
MOST_TOKENS = 500  # tokens per session that identify conversations; above this, the oldest is dropped
LONGEST_GAP = 8  # request numbers that never arrived here, or that needed no session


@dataclass(slots=True, eq=False)
class Conversation:
    """One conversation. Questions and calls refer to it."""

    client: object
    last_id: int | None = None  # highest request number so far
    lines: list[ClientLine] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Conversation {self.client!r} last={self.last_id} lines={len(self.lines)}>"


class Conversations:
    """The conversations of one session."""

    def __init__(self) -> None:
        self._by_token: dict[object, Conversation] = {}

    def __len__(self) -> int:
        return len(set(map(id, self._by_token.values())))

    def find(self, client: object, line: ClientLine | None, request_id: object, meta: JsonObject) -> Conversation:
        """Return the conversation that a request belongs to. `line` is None if others share its connection."""
        meta_id = next((meta[key] for key in META_KEYS if isinstance(meta.get(key), str)), None)
        if meta_id is not None:
            found = self._find(client, (client, meta_id[:LONGEST_ID]), None)
        else:
            found = self._find(client, client if line is None else (client, line.name), line)
        if type(request_id) is int and (found.last_id is None or request_id > found.last_id):
            found.last_id = request_id
        return found

    def _find(self, client: object, token: object, line: ClientLine | None) -> Conversation:
        found = self._by_token.pop(token, None)
        if found is not None:
            self._by_token[token] = found  # the newest again
        else:
            found = self._by_token[token] = self._continued_by(line, client) or Conversation(client)
            if line is not None:
                found.lines = [*(other for other in found.lines if other.carrier is not None), line]
            if len(self._by_token) > MOST_TOKENS:
                del self._by_token[next(iter(self._by_token))]
        return found

    def _continued_by(self, line: ClientLine | None, client: object) -> Conversation | None:
        """Return the conversation that continues on this new connection, if the first request number identifies it."""
        if line is None or line.first_id is None:
            return None
        near = {
            conversation: conversation.last_id
            for conversation in self._by_token.values()
            if conversation.client == client
            and conversation.last_id is not None
            and 0 < line.first_id - conversation.last_id <= LONGEST_GAP
            and not any(other.is_idle for other in conversation.lines)
        }
        nearest = [conversation for conversation, last in near.items() if last == max(near.values())]
        return nearest[0] if len(nearest) == 1 else None
