"""Which servers an import writes, and under which names."""

from emceepee.clients.entry_reader import FoundServer
from emceepee.clients.import_plan import ImportOutcome, plan_import
from emceepee.clients.known_clients import client_called
from emceepee.wire.json_types import JsonObject

GIT: JsonObject = {"command": "uvx", "args": ["git"]}
TIME: JsonObject = {"command": "uvx", "args": ["mcp-server-time"]}
WEB: JsonObject = {"url": "http://x"}


def a_server(name: str, entry: JsonObject | None, client: str = "cursor", problem: str = "") -> FoundServer:
    return FoundServer(client=client_called(client), name=name, entry=entry, problem=problem)


def test_an_imported_server_keeps_its_name() -> None:
    [plan] = plan_import([a_server("git", GIT)], {})
    assert (plan.outcome, plan.name, plan.is_written, plan.notes) == (ImportOutcome.NEW, "git", True, ())


def test_a_server_found_in_two_clients_is_imported_once() -> None:
    plans = plan_import([a_server("git", GIT), a_server("repo", GIT | {"timeout_ms": 5}, "zed")], {})
    assert [(plan.outcome, plan.name, plan.words) for plan in plans] == [
        (ImportOutcome.NEW, "git", ""),
        (ImportOutcome.DUPLICATE, "git", 'the same server as "git"'),
    ]
    assert all(plan.is_behind for plan in plans)


def test_a_server_that_is_already_configured_is_not_imported_again() -> None:
    [plan] = plan_import([a_server("git", GIT)], {"git": GIT | {"timeout_ms": 5}})
    assert (plan.outcome, plan.words) == (ImportOutcome.DUPLICATE, "it is there already")


def test_a_different_server_with_the_same_name_is_renamed_after_its_client() -> None:
    found = [a_server("git", WEB), a_server("git", {"command": "z"}, "zed"), a_server("git", {"command": "y"})]
    plans = plan_import(found, {"git": GIT})
    assert [(plan.outcome, plan.name) for plan in plans] == [
        (ImportOutcome.RENAMED, "git-cursor"),
        (ImportOutcome.RENAMED, "git-zed"),
        (ImportOutcome.RENAMED, "git-cursor-2"),
    ]
    assert plans[0].words == 'another server is named "git", so this one becomes "git-cursor"'


def test_an_import_never_adds_emceepee_as_its_own_server() -> None:
    itself: list[JsonObject] = [
        {"command": "/home/ada/.local/bin/emceepee"},
        {"command": "uvx", "args": ["emceepee", "--config", "x"]},
        {"command": "uvx", "args": ["--from", "emceepee[keyring]", "emceepee"]},
        {"command": "python3", "args": ["-m", "emceepee"]},
        {"command": "uvx", "args": ["--with", "keyring", "--from", "./dist/x.whl", "--offline", "emceepee"]},
        {"command": "uv", "args": ["tool", "run", "--from", "emceepee[otel]", "emceepee"]},
        {"command": "pipx", "args": ["run", "emceepee==0.2"]},
        {"command": "pipx", "args": ["run", "--spec", "git+https://host.test/x", "emceepee"]},
        {"url": "http://127.0.0.1:8080/mcp"},
    ]
    found = [a_server("emceepee", WEB), *(a_server(f"s{index}", entry) for index, entry in enumerate(itself))]
    plans = plan_import(found, {}, ["http://127.0.0.1:8080/mcp"])
    assert {plan.outcome for plan in plans} == {ImportOutcome.OWN}
    assert not any(plan.is_behind for plan in plans)


def test_a_server_that_only_mentions_emceepee_is_imported() -> None:
    others: list[JsonObject] = [
        {"command": "uvx", "args": ["mcp-server-git", "--repository", "emceepee"]},
        {"command": "uvx", "args": ["--with", "emceepee", "mcp-server-git"]},
        {"command": "uvx", "args": ["--from", "emceepee"]},
        {"command": "python", "args": ["-m", "emceepee.demo"]},
        {"command": "npx", "args": ["emceepee"]},
    ]
    plans = plan_import([a_server(f"s{index}", entry) for index, entry in enumerate(others)], {})
    assert {plan.outcome for plan in plans} == {ImportOutcome.NEW}


def test_an_imported_secret_is_unchanged_and_reported_with_a_hint() -> None:
    [plan] = plan_import([a_server("git", GIT | {"env": {"API_KEY": "s3cret"}})], {})
    assert plan.notes == ("contains a literal secret (env.API_KEY): ${env:NAME} or ${keyring:SERVICE/NAME} is safer",)


def test_the_client_keeps_servers_that_are_disabled_here() -> None:
    """With --take, a server must not be lost because it is disabled here."""
    off = GIT | {"disabled": True}
    [imported] = plan_import([a_server("git", off)], {})
    assert (imported.is_written, imported.is_behind) == (True, False)
    [there] = plan_import([a_server("git", GIT)], {"git": off})
    assert (there.words, there.is_behind) == ("it is there already, and disabled", False)
    unused = FoundServer(client=client_called("cursor"), name="git", entry=off, is_used=False)
    assert all(plan.is_behind for plan in (*plan_import([unused], {}), *plan_import([unused], {"git": off})))


def test_a_server_that_cannot_run_is_not_imported() -> None:
    [plan] = plan_import([a_server("x", None, problem="why")], {})
    assert (plan.outcome, plan.words, plan.is_behind) == (ImportOutcome.UNSUPPORTED, "why", False)


def test_a_shareable_server_is_imported_unchanged_with_a_note() -> None:
    [plan] = plan_import([a_server("time", TIME)], {})
    assert plan.notes == (
        'mcp-server-time is known to be stateless: with "sharing": "shared", one process is enough for all sessions',
    )
    [plan] = plan_import([a_server("time", TIME)], {"time": TIME | {"sharing": "shared"}})
    assert plan.outcome is ImportOutcome.DUPLICATE
