"""Two principals log in to one server: the data of each, and the requests at the server."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.callers.http_process import HttpCaller, HttpProcess, http_process, until
from support.sessions.replies import text_of
from support.system.authorization_server import serving
from support.system.personal_server import NOTE, PersonalServer

Json = dict[str, Any]
TOKENS = {"ann": "token-of-ann", "bob": "token-of-bob"}
CALLS = 5


@pytest.fixture
async def server() -> AsyncIterator[PersonalServer]:
    async with serving(PersonalServer()) as running:
        yield running


@pytest.fixture
async def endpoint() -> AsyncIterator[HttpProcess]:
    options = [word for name, token in TOKENS.items() for word in ("--token", f"{name}={token}")]
    async with http_process(*options) as running:
        yield running


@dataclass
class Person:
    """One principal with two sessions, of which one is of 2026-07-28. `login` is its number at the server."""

    server: PersonalServer
    sessions: list[HttpCaller]
    login: int = -1

    async def log_in(self) -> None:
        known = set(self.server.logins)
        added = await self.sessions[0].value("add_server", name="tracker", url=self.server.resource)
        assert added["server"]["status"] == "authorizing"
        async with self.sessions[0].endpoint.http.get(added["server"]["authorizationUrl"]) as page:
            assert page.status == 200, await page.text()
        for session in self.sessions:
            reply = await session.call("execute_tool", server="tracker", tool="x", args={})
            while task := (reply.get("structuredContent") or {}).get("proxy_task"):
                reply = await session.call("get_task_result", task_id=task["task_id"])
        (self.login,) = set(self.server.logins) - known

    async def questions(self) -> list[Json]:
        found = [(await session.value("get_elicitations"))["requests"] for session in self.sessions]
        return [question for some in found for question in some]

    async def notified(self) -> list[str]:
        """The methods of what the server told any of the sessions."""
        found = [(await session.value("get_notifications"))["notifications"] for session in self.sessions]
        return [notification["method"] for some in found for notification in some]

    async def what_is_there(self) -> Json:
        """As each session gets it: the lists, the resource, a result."""
        found: list[Json] = []
        for session in self.sessions:
            tools = (await session.value("list_tools", server="tracker"))["tools"]
            resources = (await session.value("list_resources", server="tracker"))["resources"]
            read = await session.value("read_resource", server="tracker", uri=NOTE)
            called = await session.call("execute_tool", server="tracker", tool=tools[0]["name"], args={})
            found.append(
                {
                    "tools": [tool["name"] for tool in tools],
                    "resources": [resource["name"] for resource in resources],
                    "note": read["contents"][0]["text"],
                    "called": text_of(called),
                    "instructions": (await session.value("get_server_status", server="tracker"))["instructions"],
                }
            )
        first, *others = found
        assert all(other == first for other in others)
        return first


def own(login: int) -> Json:
    return {
        "tools": [f"tool-of-{login}"],
        "resources": [f"note of {login}"],
        "note": f"note of {login}",
        "called": f"for {login}",
        "instructions": f"for {login}",
    }


async def a_person(name: str, endpoint: HttpProcess, server: PersonalServer) -> Person:
    headers = {"authorization": f"Bearer {TOKENS[name]}"}
    return Person(server, [await endpoint.caller(**headers), endpoint.modern(**headers)])


@pytest.fixture
async def people(endpoint: HttpProcess, server: PersonalServer) -> list[Person]:
    return [await a_person(name, endpoint, server) for name in TOKENS]


async def test_two_principals_share_nothing_of_a_server_where_both_log_in(
    people: list[Person], server: PersonalServer
) -> None:
    ann, bob = people
    await ann.log_in()
    assert (await bob.sessions[0].value("list_servers"))["servers"] == [], "a server is whose who added it"
    assert await bob.questions() == []
    await bob.log_in()
    assert ann.login != bob.login
    assert await ann.questions() == []

    for _ in range(CALLS):
        assert await ann.what_is_there() == own(ann.login)
        assert await bob.what_is_there() == own(bob.login)
    server.valid.clear()  # both have to refresh
    assert await bob.what_is_there() == own(bob.login)
    assert await ann.what_is_there() == own(ann.login)
    assert (server.asked, server.replayed) == (2, 0)

    for what in ("token", "peer", "session_id"):
        shared = server.of(ann.login, what) & server.of(bob.login, what) - {None}
        assert shared == set(), f"a {what} is one principal's"
    assert all(server.owners[each.session_id] == each.login for each in server.seen if each.session_id is not None)


async def test_login_data_from_a_server_for_one_principal_is_hidden_from_others(
    people: list[Person], server: PersonalServer
) -> None:
    ann, bob = people
    for person in people:
        await person.log_in()
        await person.sessions[0].value("subscribe_resource", server="tracker", uri=NOTE)
        await until(lambda login=person.login: server.has_stream(login), "it listens")
        assert await person.notified() == []
    server.push(ann.login, "notifications/resources/updated", uri=NOTE)
    heard: list[str] = []

    async def has_heard() -> bool:
        heard.extend(await ann.notified())
        return bool(heard)

    await until(has_heard, "ann has heard of it")
    server.push(bob.login, "notifications/tools/list_changed")

    async def bob_has_heard() -> bool:
        return "notifications/tools/list_changed" in await bob.notified()

    await until(bob_has_heard, "bob has heard of what is his")
    heard.extend(await ann.notified())
    assert set(heard) == {"notifications/resources/updated"}
    events = await bob.sessions[0].value("await_activity", timeout_ms=100, last_event_id="0")
    told = [event["data"].get("method") for each in events["events"] for event in each["events"]]
    assert "notifications/resources/updated" not in told


async def test_logout_and_login_failures_of_one_principal_do_not_affect_another(
    people: list[Person], server: PersonalServer
) -> None:
    ann, bob = people
    await ann.log_in()
    await bob.log_in()
    await bob.sessions[0].value("remove_server", name="tracker")
    await until(lambda: len(server.revoked) == 2, "his tokens were given back")
    assert set(server.revoked) & server.of(ann.login, "token") == set()
    assert await ann.what_is_there() == own(ann.login)
    assert (server.asked, await ann.questions()) == (2, [])
