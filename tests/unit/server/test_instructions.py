import pytest

from emceepee.backends.spec import BackendSpec, ServerEntry, StdioTarget
from emceepee.server.instructions import how_to, instructions
from emceepee.surface import Surface
from support.sessions.catalogue import CATALOGUE

TWO_KILOBYTES = 2048  # some clients truncate at this length


def server(name: str, description: str | None = None) -> BackendSpec:
    return BackendSpec(name=name, target=StdioTarget(command="x"), description=description)


def listed(*servers: BackendSpec) -> list[str]:
    """Return the lines that name servers."""
    head, *lines = instructions(servers).removeprefix(how_to(Surface.FULL)).lstrip("\n").split("\n")
    assert head == "Configured servers:"
    return lines


def test_the_instructions_begin_with_the_purpose_of_emceepee() -> None:
    assert instructions([]).startswith(
        "emceepee lets you use other MCP servers: their tools, resources and prompts. list_tools "
    )


def test_the_instructions_name_only_existing_tools() -> None:
    named = {word.strip(".,:;()") for word in how_to(Surface.FULL).split() if "_" in word} - {
        "pending_client_action",
        "events_since_last_response",
    }
    assert named
    assert named <= set(CATALOGUE)


def test_the_instructions_state_that_no_server_is_configured() -> None:
    assert instructions([]) == f"{how_to(Surface.FULL)}\nNo server is configured yet."


def test_the_instructions_list_each_server_with_its_purpose_on_one_line() -> None:
    lines = listed(server("notes", "what we decided"), server("files"))
    assert lines == ["- notes: what we decided", "- files"]


@pytest.mark.parametrize("text", ["a\nb", "a\r\n\tb", "a\x00\x1bb", "a\u2028b", "a\u202eb", "  a   b "])
def test_a_server_purpose_in_the_instructions_stays_on_one_line(text: str) -> None:
    assert listed(server("notes", text)) == ["- notes: a b"]


def test_a_server_name_in_the_instructions_stays_on_one_line() -> None:
    assert listed(server("no\u2028tes")) == ["- no tes"]


def test_a_long_server_purpose_is_shortened_with_an_ellipsis() -> None:
    [line] = listed(server("notes", "x" * 500))
    assert line == f"- notes: {'x' * 99}…"


def test_a_long_server_list_ends_with_the_number_of_remaining_servers() -> None:
    *lines, last = listed(*(server(f"server-{number:03}", "y" * 80) for number in range(50)))
    assert len(lines) == 10
    assert last == "and 40 more: list_servers"
    assert sum(len(line) + 1 for line in lines) <= 1000


def test_the_instructions_are_shorter_than_the_limit_of_clients() -> None:
    many = [server("n" * 100, "é" * 200) for _ in range(50)]
    assert len(instructions(many).encode()) <= TWO_KILOBYTES + 1000  # each letter of the list takes two bytes
    assert len(instructions(many)) <= TWO_KILOBYTES


def test_a_configured_server_description_is_folded_to_one_line_and_shortened() -> None:
    entry = ServerEntry.model_validate({"name": "a", "command": "x", "description": "one\ntwo " + "z" * 600})
    kept = entry.spec().description
    assert kept is not None
    assert kept.startswith("one two zzz")
    assert len(kept) == 500
    assert ServerEntry.model_validate({"name": "a", "command": "x", "description": " \n "}).spec().description is None
