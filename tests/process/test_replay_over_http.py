"""Real servers are recorded and replayed over HTTP to an emceepee and to the official client, in both eras."""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext

from support.callers.command_line import DEMO, CommandLine
from support.callers.emceepee_process import BOUND, EmceepeeProcess, configured, emceepee
from support.callers.http_process import HELLO, HttpCaller, HttpProcess
from support.callers.replay_process import replaying
from support.matrix import matrix
from support.recordings import call, lines, notice, question, result
from support.server_programs.asking_servers import everything, modern
from support.system.ports import free_port
from support.system.processes import below

HANDSHAKE, MODERN = ERAS = ("legacy", "2026-07-28")
Call = tuple[str, dict[str, Any]]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recording of a server: calls, and one with a question and its answer."""

    server: Callable[[], AbstractContextManager[dict[str, Any]]]
    calls: tuple[Call, ...]
    asking: Call
    form: dict[str, Any]
    progress: list[float] = field(default_factory=list)  # of the last call


def demo(mode: str) -> AbstractContextManager[dict[str, Any]]:
    return nullcontext(DEMO | {"mode": mode})


TABLE = {"guests": 4, "time": "19:30", "window": True}
DEMO_CALLS: tuple[Call, ...] = (("add", {"a": 2, "b": 40}), ("dig", {"seconds": 0.2}))
STEPS = [1.0, 2.0, 3.0, 4.0, 5.0]
QUICK_RECORDED = ["the demo server on stdio, legacy", "a server of 2026-07-28 over HTTP"]
RECORDED = {
    **{
        f"the demo server on stdio, {mode}": Recorded(
            server=partial(demo, mode),
            calls=DEMO_CALLS,
            asking=("book_table", {"restaurant": "Luigi"}),
            form=TABLE,
            progress=STEPS,
        )
        for mode in ERAS
    },
    "server-everything over HTTP": Recorded(
        server=partial(everything, "streamableHttp"),
        calls=(("get-sum", {"a": 2, "b": 40}), ("trigger-long-running-operation", {"duration": 1, "steps": 5})),
        asking=("trigger-elicitation-request", {}),
        form={"name": "Jo"},
        progress=STEPS,
    ),
    "a server of 2026-07-28 over HTTP": Recorded(
        server=partial(modern, "http"),
        calls=(("try_again", {}),),
        asking=("ask_once", {"n": 1}),
        form={"name": "Jo"},
    ),
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A client's results: its tools, the first block of each result, and its questions."""

    tools: list[str]
    blocks: list[Any]
    asked: list[str]


async def seen_through_emceepee(entry: dict[str, Any], recorded: Recorded) -> Seen:
    """With the server behind it, and what is asked answered."""
    async with emceepee(env=configured({"one": entry})) as caller:
        await caller.initialize()
        tools = (await caller.value("list_tools", server="one"))["tools"]
        results = [await executed(caller, *each) for each in recorded.calls]
        begun = await executed(caller, *recorded.asking)
        (asked,) = (await caller.value("get_elicitations"))["requests"]
        answer = {"request_id": asked["requestId"], "action": "accept", "content": recorded.form}
        await caller.value("respond_to_elicitation", **answer)
        task = begun["structuredContent"]["proxy_task"]["task_id"]
        results.append(await caller.call("get_task_result", task_id=task))
        assert await caller.end() == 0
    names = [tool["name"] for tool in tools]
    return Seen(tools=names, blocks=[each["content"][0] for each in results], asked=[asked["message"]])


async def executed(caller: EmceepeeProcess, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return await caller.call("execute_tool", server="one", tool=tool, args=arguments)


async def seen_by_the_official_client(url: str, mode: str, recorded: Recorded) -> Seen:
    asked: list[str] = []
    steps: list[float] = []

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content=recorded.form)

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with asyncio.timeout(BOUND), Client(url, mode=mode, elicitation_callback=elicit) as client:
        assert client.protocol_version == (MODERN if mode == MODERN else "2025-11-25")
        tools = (await client.list_tools()).tools
        results = [await client.call_tool(*each, progress_callback=note) for each in recorded.calls]
        assert steps == recorded.progress
        results.append(await client.call_tool(*recorded.asking))
    blocks = [each.content[0].model_dump(mode="json", by_alias=True, exclude_none=True) for each in results]
    return Seen(tools=[tool.name for tool in tools], blocks=blocks, asked=asked)


@pytest.mark.parametrize("name", matrix(RECORDED, representatives=QUICK_RECORDED))
async def test_clients_of_both_eras_get_the_recorded_results_and_questions_over_http(name: str, tmp_path: Path) -> None:
    recorded, file = RECORDED[name], tmp_path / "one.jsonl"
    with recorded.server() as server:
        real = await seen_through_emceepee(server | {"record": str(file)}, recorded)
    assert (len(real.blocks), len(real.asked)) == (len(recorded.calls) + 1, 1)
    async with replaying(file) as replay:
        for era in ERAS:
            assert await seen_through_emceepee({"url": replay.url, "mode": era}, recorded) == real, era
    async with replaying(file) as replay:
        for era in ERAS:
            assert await seen_by_the_official_client(replay.url, era, recorded) == real, era


SHOP = lines(
    *(call(1, 0, "ship"), question(1, 1, "q1", "Where?"), result(1, 2, "done")),
    *(call(2, 3, "buy"), result(2, 4, "bought"), notice(None, 5, "tools/list_changed")),
    *({"at": 6, "type": "request", "id": 3, "method": "tools/list", "params": {}},),
    *({"at": 7, "type": "result", "id": 3, "result": {"tools": []}},),
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.jsonl"
    file.write_bytes(b"\n".join(SHOP))
    return file


async def test_the_official_client_receives_the_notifications_after_a_call(shop: Path) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()

    async def take(message: object) -> None:
        heard.put_nowait(message)

    async with (
        replaying(shop) as replay,
        asyncio.timeout(BOUND),
        Client(replay.url, mode=HANDSHAKE, message_handler=take) as client,
    ):
        await client.call_tool("buy", {})
        assert isinstance(await heard.get(), types.ToolListChangedNotification)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:{port}"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:{port}"}, 200),
        ({"origin": "http://localhost:{port}"}, 200),
    ],
    ids=str,
)
async def test_the_replay_over_http_rejects_a_foreign_host_or_page(
    headers: dict[str, str], status: int, shop: Path
) -> None:
    async with replaying(shop) as replay:
        port = replay.origin.rpartition(":")[2]
        sent = {name: text.format(port=port) for name, text in headers.items()}
        assert await handshake_status(replay, sent) == status


async def handshake_status(replay: HttpProcess, headers: dict[str, str]) -> int:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    async with asyncio.timeout(BOUND), replay.http.post(replay.url, json=hello, headers=headers) as response:
        return response.status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_signal_ends_the_replay_over_http_in_order_despite_waiting_clients(number: int, shop: Path) -> None:
    async with replaying(shop) as replay:
        assert below(replay.process.pid) == []
        caller, stateless = await caller_that_answers(replay), replay.modern()
        wish = {"notifications": {"toolsListChanged": True}}
        async with (
            caller.get() as pushed,
            stateless.post("subscriptions/listen", wish) as listening,
            caller.stream("ship") as shipping,
        ):
            assert listening.status == 200
            first, asked = await shipping.some(2)
            assert (first.message, (asked.message or {})["method"]) == (None, "elicitation/create")
            replay.process.send_signal(number)
            assert await pushed.rest() == []
            last = (await shipping.rest())[-1].message
            assert last is not None
            assert last["error"]["message"] == "Request cancelled"
        assert await asyncio.wait_for(replay.process.wait(), BOUND) == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", int(replay.origin.rpartition(":")[2]))) != 0
    assert [each.name for each in shop.parent.iterdir()] == [shop.name]


async def caller_that_answers(replay: HttpProcess) -> HttpCaller:
    """As it says itself."""
    caller = HttpCaller(replay, {})
    async with caller.post("initialize", HELLO | {"capabilities": {"elicitation": {}}}) as response:
        caller.headers["mcp-session-id"] = response.headers["mcp-session-id"]
    return caller


async def test_the_replay_over_http_listens_at_the_given_address(shop: Path) -> None:
    port = free_port()
    async with replaying(shop, listen=f"localhost:{port}") as replay:
        assert replay.url == f"http://localhost:{port}/mcp"
        assert await handshake_status(replay, {}) == 200


async def test_on_a_public_address_the_replay_accepts_ip_addresses_and_allowed_host_names(shop: Path) -> None:
    allowed = ("--allow-host", "shop.test", "--allow-origin", "https://shop.test")
    async with replaying(shop, "--insecure", *allowed, listen="0.0.0.0:0") as replay:
        hosts = {"10.0.0.7": 200, "shop.test": 200, "other.test": 421}
        assert {host: await handshake_status(replay, {"host": host}) for host in hosts} == hosts
        origins = {"https://shop.test": 200, "https://other.test": 403}
        assert {origin: await handshake_status(replay, {"origin": origin}) for origin in origins} == origins


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--listen", "0.0.0.0:0"], "--listen: 0.0.0.0 lets other machines read the recording"),
        (["--listen", "shop"], "expected [HOST:]PORT, such as 127.0.0.1:8080, found 'shop'"),
        (["--listen", "70000"], "expected [HOST:]PORT"),
        (["--listen", "localhost:80/mcp"], "expected [HOST:]PORT"),
        (["--listen", "0", "--list"], "--list: not allowed with argument --listen"),
        (["--insecure"], "are for HTTP: also pass --listen PORT"),
        (["--listen", "TAKEN"], "cannot listen on 127.0.0.1:"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_replay_that_cannot_listen_reports_the_reason(words: list[str], expected: str, shop: Path) -> None:
    line = CommandLine.in_home(shop.parent)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, out, err = await line.run("replay", shop.name, *(port if word == "TAKEN" else word for word in words))
    assert (code, out) == (2, "")
    assert expected in err
    assert "Traceback" not in err
