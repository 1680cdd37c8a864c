"""A connection reset during a call of a third-party server."""

from support.callers.emceepee_process import emceepee
from support.faults.fault_proxy import fault_proxy
from support.server_programs.real_servers import everything_on_a_port
from support.sessions.asking import task_id

LONG = {"server": "real", "tool": "trigger-long-running-operation", "args": {"duration": 4, "steps": 1}}


async def test_a_call_whose_connection_to_a_real_server_is_reset_gets_its_result() -> None:
    """The server stores the answer but sends it to no stream: it lost track of the resumed one."""
    with everything_on_a_port("streamableHttp") as port:
        async with fault_proxy(port) as proxy, emceepee() as caller:
            await caller.initialize()
            await caller.value("add_server", name="real", url=f"http://127.0.0.1:{proxy.port}/mcp")
            promotion = await caller.call("execute_tool", timeout_ms=500, **LONG)
            proxy.reset()
            result = await caller.call("get_task_result", task_id=task_id(promotion), timeout_ms=30_000)
    assert "Long running operation completed" in result["content"][0]["text"]
