"""Handshake era callers over HTTP continue after a server restart without a new handshake."""

import re

import pytest

from emceepee.server.http.connection_records import ConnectionRecord, write_connection
from emceepee.server.http.handshake_connection import RESTARTED
from emceepee.sessions.records import RecordKind
from emceepee.state.attendance import READING_SECONDS
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Commit, RecordKey
from support.fakes.clock import settle
from support.in_process.asgi_caller import AsgiCaller
from support.in_process.asgi_messages import Answered
from support.in_process.http_endpoint import EndpointClient, an_endpoint_of, ended
from support.sessions.asking import elicit
from support.sessions.machine import Machine

EVENTS = {"uri": "emceepee://events"}


def event_ids(answered: Answered) -> list[str]:
    return re.findall(r"^id: (\S+)$", answered.body.decode(), re.MULTILINE)


async def slow_call(client: EndpointClient, connection: str) -> Answered:
    """A call whose answer is a stream, and has not come."""
    call = client.call("execute_tool", server="one", tool="slow", timeout_ms=60_000)
    headers = {"mcp_session_id": connection, "accept": "application/json, text/event-stream"}
    answered, _ = await client.start("POST", call, **headers)
    await client.clock.advance(20)
    assert event_ids(answered), "there is something to come back with"
    return answered


async def resume(client: EndpointClient, connection: str, last: str) -> Answered:
    headers = {"mcp_session_id": connection, "accept": "text/event-stream", "last_event_id": last}
    answered, reading = await client.start("GET", **headers)
    assert await ended(reading)
    return answered


async def test_a_session_id_remains_valid_after_a_restart_with_the_negotiated_version() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connection, joined = await client.join(), await client.join("desk")
        for one in (connection, joined):
            await client.value(one, "set_timer", duration_ms=3_600_000, message=one)
    async with machine.process() as place, an_endpoint_of(place) as client:
        for one in (joined, connection):
            assert await client.status(one) == 200
            timers = (await client.value(one, "list_timers"))["timers"]
            assert [timer["message"] for timer in timers] == [one]
        assert len(client.sessions()) == 2
        assert (await client.ask("DELETE", mcp_session_id=connection)).status == 200
    async with machine.process() as place, an_endpoint_of(place) as client:
        assert [await client.status(one) for one in (connection, joined)] == [404, 200]


async def test_an_answered_initialize_survives_a_kill_though_nothing_was_called() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connection = await client.join()
    async with machine.process() as place, an_endpoint_of(place) as client:
        assert await client.status(connection) == 200
        assert await client.status("01NEVERTHERE") == 404


async def test_a_connection_that_left_its_named_session_is_not_found_again_after_a_restart() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        gone, stays = await client.join("desk"), await client.join("desk")
        assert (await client.ask("DELETE", mcp_session_id=gone)).status == 200
        await machine.clock.advance(1)
    async with machine.process() as place, an_endpoint_of(place) as client:
        assert [await client.status(one) for one in (gone, stays)] == [404, 200]


async def rewrite_handshake(machine: Machine, key: SessionKey, connection: str, **said: object) -> None:
    """As if an emceepee had written it that took this for a handshake."""
    store = machine.store.another_process()
    stored = await store.take(key)
    assert stored is not None
    record = ConnectionRecord(handshake=said, is_initialized=True, follows_events=False, pushed=0)
    puts = {RecordKey(RecordKind.CONNECTION, connection): write_connection(record)}
    assert await store.commit([Commit(head=stored.head, lease=stored.lease, puts=puts)]) != [None]
    await store.close()


async def test_a_connection_whose_handshake_is_rejected_initializes_again_and_other_connections_continue() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        alone, joined, beside = await client.join(), await client.join("desk"), await client.join("desk")
    await rewrite_handshake(machine, SessionKey("local", KeyKind.ID, alone), alone, capabilities=5)
    await rewrite_handshake(machine, SessionKey("local", KeyKind.NAME, "desk"), joined, protocolVersion=[])
    async with machine.process() as place, an_endpoint_of(place) as client:
        assert [await client.status(one) for one in (alone, joined, beside)] == [404, 404, 200]
        assert await client.status(await client.join()) == 200


async def test_timers_fire_even_in_a_session_whose_connection_is_not_restored() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connections = [await client.join(), await client.join()]
        for one in connections:
            await client.value(one, "set_timer", duration_ms=60_000, message="tea")
    await rewrite_handshake(machine, SessionKey("local", KeyKind.ID, connections[0]), connections[0], capabilities=5)
    async with machine.process() as place, an_endpoint_of(place) as client:
        await machine.clock.advance(61)
        assert [session.activity.last_event_id is not None for session in client.sessions()] == [True, True]
        assert [await client.status(one) for one in connections] == [404, 200]


async def test_an_open_stream_ends_at_a_restart_with_an_error_that_gives_the_reason() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connection = await client.join()
        answered = await slow_call(client, connection)
        last = event_ids(answered)[-1]
    async with machine.process() as place, an_endpoint_of(place) as client:
        again = await resume(client, connection, last)
        assert again.status == 200
        assert RESTARTED in again.body.decode()
        assert '"id":2' in again.body.decode().replace(" ", ""), "it answers the request that was asked"


async def test_an_answer_that_was_written_to_a_stream_is_replayed_after_a_restart() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connection = await client.join()
        answered = await slow_call(client, connection)
        first = event_ids(answered)[0]
        (await place.backend.next_asked()).reply(content=[{"type": "text", "text": "the answer"}])
        await settle()
        assert "the answer" in answered.body.decode()
    async with machine.process() as place, an_endpoint_of(place) as client:
        again = await resume(client, connection, first)
        assert "the answer" in again.body.decode()
        assert RESTARTED not in again.body.decode()
        unknown = await resume(client, connection, "01NEVERTHERE")
        assert unknown.status == 400


async def test_no_message_of_a_stream_is_written_before_it_is_stored() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connection = await client.join()
        await slow_call(client, connection)
        (session,) = client.sessions()
        assert not session.unsaved


async def test_messages_without_a_request_are_pushed_after_a_restart_and_events_resume() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        connection = await client.join()
        await client.ask("POST", body=client.message("resources/subscribe", EVENTS), mcp_session_id=connection)
        await client.value(connection, "set_timer", duration_ms=1000, message="tea")
        await machine.clock.advance(2)
    async with machine.process() as place, an_endpoint_of(place) as client:
        await client.status(connection)
        pushed, _ = await client.start("GET", mcp_session_id=connection, accept="text/event-stream")
        before = pushed.body.count(b"notifications/resources/updated")
        assert before, "what was not read is still there"
        await client.value(connection, "set_timer", duration_ms=1000, message="more tea")
        await machine.clock.advance(2)
        assert pushed.body.count(b"notifications/resources/updated") > before
        await client.ask("DELETE", mcp_session_id=connection)


async def test_an_ended_connection_is_gone_at_once_and_its_session_exists_once() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        gone, stays = await client.join("desk"), await client.join("desk")
        await machine.clock.advance(1)
        deleted = [(await client.ask("DELETE", mcp_session_id=gone)).status for _ in range(2)]
        assert deleted == [200, 404]
        assert len(client.sessions()) == 1
    async with machine.process() as place, an_endpoint_of(place) as client:
        assert [await client.status(one) for one in (gone, stays)] == [404, 200]


async def test_a_stored_key_of_a_session_that_is_already_loaded_creates_no_second_session() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        stays = await client.join("desk")
        (session,) = client.sessions()
        lagging = SessionKey("local", KeyKind.CONNECTION, "01LAGGING")
        session.keys |= {lagging}
        session.update_profile(label="x")
        await session.unsaved.save()
        session.keys -= {lagging}
        assert (await client.status("01LAGGING"), client.sessions()) == (404, [session])
        await client.value(stays, "set_timer", duration_ms=3_600_000, message="still ours")
        assert client.sessions() == [session]


SLOW = {"name": "execute_tool", "arguments": {"server": "one", "tool": "slow"}}


@pytest.mark.parametrize("is_modern", [True, False])
async def test_a_caller_with_elicitation_support_is_still_asked_after_a_restart(is_modern: bool) -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        caller = AsgiCaller(place, client.endpoint, is_modern=is_modern, capabilities={"elicitation": {}})
        await caller.open()
    async with machine.process() as place, an_endpoint_of(place) as client:
        caller = caller.moved_to(place, client.endpoint)
        line = caller.post("tools/call", SLOW)
        call = await place.backend.next_asked()
        waiting = elicit(place.backend, origin=call.origin)
        await settle()
        if is_modern:
            assert line.message["result"]["resultType"] == "input_required"
        else:
            request = line.events[-1].message or {}
            assert request["method"] == "elicitation/create"
            await place.clock.advance(READING_SECONDS)
            await caller.answer(request["id"], action="decline")
            assert await waiting == {"action": "decline"}
        call.reply(content=[])
        await line.served()


async def test_a_call_that_asked_before_a_restart_does_not_run_again_when_it_is_resent() -> None:
    machine = Machine()
    async with machine.process() as place, an_endpoint_of(place) as client:
        caller = AsgiCaller(place, client.endpoint, is_modern=True, capabilities={"elicitation": {}})
        await caller.open()
        line = caller.post("tools/call", SLOW)
        call = await place.backend.next_asked()
        elicit(place.backend, origin=call.origin)
        asking = (await line.served()).message["result"]
    async with machine.process() as place, an_endpoint_of(place) as client:
        caller = caller.moved_to(place, client.endpoint)
        [key] = asking["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Jo"}}}
        again = SLOW | {"requestState": asking["requestState"], "inputResponses": answers}
        error = (await caller.post("tools/call", again).served()).message["result"]["structuredContent"]["error"]
        assert "restarted" in error["message"]
        assert "tools/call" not in [method for method, _ in place.backend.seen]
