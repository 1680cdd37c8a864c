"""An observed link behaves like any other link."""

import asyncio
from collections.abc import Mapping

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.backends.links.client_messages import NumberedParams, request_message
from emceepee.backends.links.observed_link import ObservedLink, callee_of
from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.state.connection.connection_state import CLOSED
from emceepee.telemetry.link_observer import CalledServer, OutgoingRequest
from emceepee.wire.codec import decode, encode
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend, ScriptedLink
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock

MAIL = CalledServer(name="mail")


class Noted:
    """An observer that records its calls."""

    def __init__(self, meta: Mapping[str, str]) -> None:
        self.meta = self.headers = meta
        self.notes: list[object] = []

    def begin(self, request: OutgoingRequest) -> "Noted":
        self.notes.append((request.method, request.protocol_version))
        return self

    def number(self, number: int) -> None:
        self.notes.append(number)

    def answered(self, result: JsonObject) -> None:
        self.notes.append(result)

    def failed(self, why: str, code: int | None) -> None:
        self.notes.append((why, code))

    def link_ended(self, callee: CalledServer, protocol_version: str, seconds: float) -> None:
        self.notes.append((callee.name, seconds))


class Observed:
    """A link to a scripted backend, observed."""

    def __init__(self, **meta: str) -> None:
        self.backend, self.clock, self.noted = ScriptedBackend(), FakeClock(), Noted(meta)
        self.inner = ScriptedLink(self.backend, ScriptedListener())
        self.link = ObservedLink(self.inner, MAIL, self.noted, self.clock)


async def test_an_observed_request_carries_the_trace_context_and_keeps_its_own_metadata() -> None:
    observed = Observed(traceparent="00-1-2-01")
    observed.backend.answers["tools/call"] = lambda params: {"got": params}
    result = await observed.link.request("tools/call", {"name": "send", "_meta": {"progressToken": 4}})
    assert result["got"] == {"name": "send", "_meta": {"progressToken": 4, "traceparent": "00-1-2-01"}}
    assert observed.noted.notes == [("tools/call", "2025-11-25"), result]


async def test_an_observed_request_without_a_trace_context_is_sent_unchanged() -> None:
    observed = Observed()
    observed.backend.answers["ping"] = lambda params: {"has": "_meta" in params}
    assert await observed.link.request("ping") == {"has": False}


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        (RpcError({"code": -32602, "message": "no"}), ("-32602", -32602)),
        (RpcError({"message": "no"}), ("rpc_error", None)),
        (LinkError(LinkFailure.UNREACHABLE, "gone"), ("unreachable", None)),
        (asyncio.CancelledError(), ("cancelled", None)),
        (KeyError("defect"), ("KeyError", None)),
    ],
)
async def test_the_observer_gets_a_failure_as_a_short_code_and_the_caller_gets_the_error(
    error: BaseException, noted: object
) -> None:
    observed = Observed()

    async def fail(params: JsonObject) -> JsonObject:
        raise error

    observed.backend.answers["tools/call"] = fail
    with pytest.raises(type(error)):
        await observed.link.request("tools/call", {})
    assert observed.noted.notes[-1] == noted


class Failing(Noted):
    """An observer that raises in one of its methods."""

    def __init__(self, moment: str) -> None:
        super().__init__({"traceparent": "00-1-2-01"})
        setattr(self, moment, self._fail)

    def _fail(self, *_: object) -> "Noted":
        raise KeyError("a defect")


@pytest.mark.parametrize("moment", ["begin", "number", "answered", "failed", "link_ended"])
async def test_a_failing_observer_is_logged_and_the_request_continues(
    moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend = ScriptedBackend()
    link = ObservedLink(ScriptedLink(backend, ScriptedListener()), MAIL, Failing(moment), FakeClock())

    def answer(params: JsonObject) -> JsonObject:
        request_message(7, "tools/call", params, meta=None, wants_progress=False)
        return {"got": params.get("_meta")}

    backend.answers["tools/call"] = answer
    result = await link.request("tools/call", {"name": "send"})
    assert result == {"got": None if moment == "begin" else {"traceparent": "00-1-2-01"}}

    async def refuse(_: JsonObject) -> JsonObject:
        raise RpcError({"code": 1, "message": "no"})

    backend.answers["tools/call"] = refuse
    with pytest.raises(RpcError):
        await link.request("tools/call", {})
    link.end(CLOSED)
    await asyncio.sleep(0)
    assert {record.message for record in caplog.records} == {"request_not_observed"}


async def test_the_duration_of_a_link_is_reported_when_it_ends() -> None:
    observed = Observed()
    await observed.clock.advance(5)
    observed.link.end(CLOSED)
    await asyncio.sleep(0)
    assert observed.noted.notes == [("mail", 5.0)]
    assert observed.link.closed.done()


def test_the_id_of_a_request_is_reported_when_the_message_is_built() -> None:
    told: list[int] = []
    params = NumberedParams({"name": "send"}, told.append)
    message = request_message(7, "tools/call", params, meta=None, wants_progress=False)
    assert told == [7]
    assert decode(encode(message))["params"] == {"name": "send"}


@pytest.mark.parametrize(
    ("target", "callee"),
    [
        (StdioTarget(command="x"), CalledServer(name="s")),
        (HttpTarget(url="https://ann:pw@a.test/mcp"), CalledServer(name="s", address="a.test", port=443)),
        (HttpTarget(url="http://a.test:8080/mcp"), CalledServer(name="s", address="a.test", port=8080)),
        (
            HttpTarget(url="unix:///run/a.sock:/t0ps3cret/mcp"),
            CalledServer(name="s", address="/run/a.sock", is_socket=True),
        ),
        (HttpTarget(url="http://a.test:x/mcp"), CalledServer(name="s", address="a.test", port=80)),
    ],
)
def test_a_server_is_identified_to_observers_by_its_address(
    target: HttpTarget | StdioTarget, callee: CalledServer
) -> None:
    assert callee_of(BackendSpec(name="s", target=target)) == callee
