"""Which conversation a request belongs to."""

import pytest

from emceepee.sessions.conversations import LONGEST_GAP, MOST_TOKENS, Conversations
from emceepee.state.client_line import ClientLine
from emceepee.wire.json_types import JsonObject

AGENT = ("claude-code 2.1", b"claude-code/2.1 (cli)")


class Connection:
    """A connection of a client with the attributes of a client line."""

    def __init__(self) -> None:
        self.is_open, self.is_busy = True, False
        self.line = ClientLine(self)

    def is_idle(self) -> bool:
        return self.is_open and not self.is_busy

    def close(self) -> None:
        self.is_open, self.line.carrier = False, None


class Window:
    """A client that counts its requests and opens a connection when it has no idle one."""

    def __init__(self, conversations: Conversations, client: object = AGENT, first: int = 0) -> None:
        self._conversations, self._client, self.next_id = conversations, client, first
        self.connections: list[Connection] = []

    def open(self) -> Connection:
        self.connections.append(Connection())
        return self.connections[-1]

    def ask(self, connection: Connection | None = None, meta: JsonObject | None = None) -> object:
        """Return the conversation of the next request."""
        idle = (each for each in self.connections if each.is_idle())
        connection = connection or next(idle, None) or self.open()
        connection.line.note(self.next_id)
        found = self._conversations.find(self._client, connection.line, self.next_id, meta or {})
        self.next_id += 1
        return found


def test_requests_on_one_connection_belong_to_one_conversation() -> None:
    window = Window(Conversations())
    assert len({window.ask() for _ in range(5)}) == 1


def test_two_client_windows_have_separate_conversations() -> None:
    conversations = Conversations()
    windows = [Window(conversations) for _ in range(2)]
    found = [window.ask() for _ in range(3) for window in windows]
    assert len(set(found)) == 2
    assert len(conversations) == 2


def test_a_window_continues_its_conversation_on_a_new_connection_after_its_own_was_closed() -> None:
    """Servers and clients close idle connections after a pause."""
    window = Window(Conversations())
    first = window.ask()
    for _ in range(3):
        window.connections[-1].close()
        assert window.ask() is first


def test_a_window_continues_its_conversation_on_a_second_connection_while_the_first_is_busy() -> None:
    window = Window(Conversations())
    first = window.ask()
    window.connections[0].is_busy = True
    assert window.ask() is first
    assert len(window.connections) == 2


def test_a_new_window_does_not_continue_the_conversation_of_a_closed_connection() -> None:
    """A new window starts counting its requests from its own beginning."""
    conversations = Conversations()
    first = Window(conversations)
    known = {first.ask() for _ in range(5)}.pop()
    first.connections[-1].close()
    assert Window(conversations).ask() is not known
    assert first.ask() is known


def test_a_new_connection_beside_an_idle_one_belongs_to_another_window() -> None:
    """Even if its request id is the next one: the client would have used the idle connection."""
    conversations = Conversations()
    known = Window(conversations).ask()
    assert Window(conversations, first=1).ask() is not known


@pytest.mark.parametrize(("skipped", "is_same"), [(0, True), (LONGEST_GAP - 1, True), (LONGEST_GAP, False)])
def test_a_window_may_skip_a_few_request_ids_and_keep_its_conversation(skipped: int, is_same: bool) -> None:
    window = Window(Conversations())
    known = window.ask()
    window.connections[-1].close()
    window.next_id += skipped
    assert (window.ask() is known) is is_same


def test_the_conversation_with_the_nearest_request_id_continues_unless_two_are_equally_near() -> None:
    for second, expected in ((2, "second"), (1, "neither")):
        conversations = Conversations()
        windows = {"first": Window(conversations, first=1), "second": Window(conversations, first=second)}
        known = {name: window.ask() for name, window in windows.items()}
        for window in windows.values():
            window.connections[-1].close()
        found = Window(conversations, first=3).ask()
        assert [name for name, conversation in known.items() if conversation is found] in ([expected], [])
        assert (expected == "neither") == (found not in known.values())


def test_different_programs_and_versions_have_separate_conversations() -> None:
    conversations = Conversations()
    known = Window(conversations).ask()
    assert Window(conversations, ("claude-code 2.1", b"claude-code/2.1 (sdk-cli)"), first=1).ask() is not known


@pytest.mark.parametrize("key", ["threadId", "vscode.conversationId", "openai/session"])
def test_a_conversation_id_sent_by_the_client_decides(key: str) -> None:
    conversations = Conversations()
    window = Window(conversations)
    connection = window.open()
    first, second = window.ask(connection, {key: "a"}), window.ask(connection, {key: "b"})
    assert first is not second
    assert Window(conversations).ask(meta={key: "a"}) is first
    assert Window(conversations, ("other 1", b"")).ask(meta={key: "a"}) is not first


def test_all_windows_of_a_program_behind_a_proxy_share_one_conversation() -> None:
    conversations = Conversations()
    found = {conversations.find(AGENT, None, number, {}) for number in (1, 1, 7, "x")}
    assert len(found) == 1


def test_without_numeric_request_ids_a_new_connection_is_a_new_conversation() -> None:
    conversations = Conversations()
    lines = [ClientLine() for _ in range(2)]
    for line in lines:
        line.note("a-b-c")
    assert conversations.find(AGENT, lines[0], "a-b-c", {}) is not conversations.find(AGENT, lines[1], "d-e-f", {})


def test_remembered_conversations_are_limited_and_the_ones_in_use_stay() -> None:
    conversations = Conversations()
    kept = Window(conversations)
    known = kept.ask()
    for _ in range(2 * MOST_TOKENS):
        Window(conversations).ask()
        assert kept.ask() is known
    assert len(conversations) == MOST_TOKENS


def test_the_remembered_connections_of_a_long_conversation_are_limited() -> None:
    window = Window(Conversations())
    for _ in range(50):
        window.ask()
        window.connections[-1].close()
    assert repr(window.ask()).endswith("lines=1>")
