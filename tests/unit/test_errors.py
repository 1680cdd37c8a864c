import time

import pytest

from emceepee.errors import (
    BackendDisconnected,
    EmceepeeError,
    ErrorCode,
    ExecutionFailed,
    InvalidArguments,
    NotAllowed,
    TimedOut,
    UnknownBackend,
    UnknownTool,
    Unsupported,
    caught,
    near_names,
)
from support.figures import record_figure


def test_a_similar_name_is_found_in_any_case() -> None:
    assert near_names("GIHUB", ["github", "files"]) == ["github"]


def test_a_name_that_contains_the_other_is_similar() -> None:
    assert near_names("git", ["my-git-server", "files"]) == ["my-git-server"]
    assert near_names("the files server", ["files", "time"]) == ["files"]


def test_the_best_similar_name_is_first_and_at_most_five_are_returned() -> None:
    names = [f"tool_{letter}" for letter in "abcdefgh"]
    near = near_names("tool_c", names)
    assert near[0] == "tool_c"
    assert len(near) == 5


@pytest.mark.parametrize("name", ["", "zzz"])
def test_an_unrelated_name_has_no_similar_ones(name: str) -> None:
    assert near_names(name, ["github", "files"]) == []


def test_overlong_names_are_never_similar() -> None:
    assert near_names("a" * 101, ["a" * 100]) == []
    assert near_names("a" * 100, ["a" * 101, "a" * 99]) == ["a" * 99]


@pytest.mark.parametrize(("name", "known"), [("ab" * 50, 5000), ("x" * 30_000, 10)])
def test_many_long_names_are_compared_quickly(name: str, known: int) -> None:
    names = [name[::-1] + str(number) if len(name) > 100 else f"{name[:95]}{number}" for number in range(known)]
    began = time.process_time()
    near_names(name, names)
    took = time.process_time() - began
    record_figure(f"a name of {len(name)} characters compared with {known} in {took:.3f} s")
    assert took < 2.5


def test_an_endless_name_is_truncated_in_an_error() -> None:
    error = UnknownTool("x" * 100_000, backend="demo", known=["y" * 100_000] * 20, answer="no")
    assert len(str(error)) < 2000
    assert len(str(error.details)) < 1000
    assert len(str(UnknownBackend("x" * 100_000, known=[]).body())) < 1000


def test_the_error_for_an_unknown_server_names_the_most_similar_one_and_the_next_step() -> None:
    error = UnknownBackend("gihub", known=["files", "github"])
    assert str(error) == 'No server is called "gihub". Did you mean github? Add one with add_server.'
    assert error.body() == {
        "code": "TOOL_ERR_SERVER_NOT_FOUND",
        "message": str(error),
        "details": {"server": "gihub", "near": ["github"], "known": ["files", "github"]},
    }


def test_the_error_for_an_unknown_server_without_a_similar_name_lists_the_known_ones() -> None:
    assert "Known: files, time. " in str(UnknownBackend("zzz", known=["time", "files"]))


def test_the_error_for_an_unknown_server_mentions_that_no_server_is_configured() -> None:
    assert "No server is configured yet." in str(UnknownBackend("zzz", known=[]))


def test_the_error_for_an_unknown_server_mentions_an_earlier_run_unless_the_name_is_misspelled() -> None:
    message = str(UnknownBackend("zzz", known=[], are_forgotten=True))
    assert "Servers added in an earlier run are gone: state is in memory" in message
    assert "`--attach auto` or `--state sqlite`" in message
    assert "earlier run" not in str(UnknownBackend("gihub", known=["github"], are_forgotten=True))


def test_the_error_for_an_unknown_server_names_ten_known_ones_and_counts_the_rest() -> None:
    error = UnknownBackend("zzz", known=[f"s{number:02}" for number in range(25)])
    assert "s09 and 15 more" in str(error)
    assert len(error.details["known"]) == 10


def test_the_error_for_an_unknown_tool_names_the_most_similar_one_and_quotes_the_server() -> None:
    error = UnknownTool("ecko", backend="demo", known=["echo", "add"], answer="no such thing")
    assert str(error) == (
        'Server "demo" has no tool "ecko". Did you mean echo? list_tools shows them. The server said: no such thing'
    )
    assert error.body()["code"] == "TOOL_ERR_NOT_FOUND"


def test_the_error_for_an_unknown_tool_mentions_that_the_server_lists_no_tools() -> None:
    assert "It lists no tools." in str(UnknownTool("x", backend="demo", known=[], answer=""))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArguments("x"), "ERR_INVALID_ARGUMENTS"),
        (NotAllowed("x"), "ERR_NOT_ALLOWED"),
        (Unsupported("x"), "ERR_UNSUPPORTED"),
        (ExecutionFailed("x"), "TOOL_ERR_EXECUTION_FAILED"),
        (BackendDisconnected("x"), "TOOL_ERR_SERVER_DISCONNECTED"),
        (TimedOut("x"), "TOOL_ERR_TIMEOUT"),
        (EmceepeeError("x"), "TOOL_ERR_EXECUTION_FAILED"),
        (EmceepeeError("x", code=ErrorCode.LIMIT_EXCEEDED), "ERR_LIMIT_EXCEEDED"),
    ],
)
def test_each_error_class_has_its_stable_code(error: EmceepeeError, code: str) -> None:
    assert error.body() == {"code": code, "message": "x", "details": {}}


def test_an_error_in_a_reply_includes_its_help_page_and_a_stored_one_does_not() -> None:
    error = NotAllowed("x", details={"server": "one"})
    assert error.body()["details"] == {"server": "one"}
    assert error.reply_body()["details"] == {"server": "one", "help": ErrorCode.NOT_ALLOWED.help_url}


def test_a_detached_error_keeps_no_traceback_and_no_cause() -> None:
    try:
        try:
            try:
                raise KeyError("first")
            except KeyError as first:
                raise ValueError("second") from first
        except ValueError as second:
            raise TimedOut("x") from second
    except TimedOut as third:
        links = [third, third.__cause__, third.__cause__ and third.__cause__.__cause__]
        caught(third)
    ways = [(link.__traceback__, link.__cause__, link.__context__) for link in links if link is not None]
    assert ways == [(None, None, None)] * 3
