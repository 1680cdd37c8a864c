"""`/metrics` of a real server: its readers and its addresses."""

import re
from typing import Any

import pytest

from support.callers.http_process import HttpProcess, http_process
from support.system.ports import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOKEN = "a-token-that-is-long-enough"


async def scrape(endpoint: HttpProcess, url: str = "", **headers: str) -> tuple[int, str]:
    given: dict[str, Any] = {name.replace("_", "-"): text for name, text in headers.items()}
    async with endpoint.http.get(url or f"{endpoint.origin}/metrics", headers=given) as response:
        return response.status, await response.text()


async def test_metrics_are_served_to_programs_on_this_machine_and_to_no_page() -> None:
    async with http_process("--metrics") as endpoint:
        caller = await endpoint.caller()
        await caller.value("list_servers")
        status, text = await scrape(endpoint)
        assert status == 200
        assert (
            'emceepee_requests_total{kind="own_tool",replica="0",server="",status="success",tool="list_servers"}'
            in text
        )
        assert "emceepee_store_commit_duration_seconds_count" in text
        assert (await scrape(endpoint, origin="http://localhost:3000"))[0] == 403
        assert (await scrape(endpoint, origin="http://evil.example"))[0] == 403
        assert (await scrape(endpoint, host="evil.example"))[0] == 421
        assert (await scrape(endpoint, x_forwarded_for="203.0.113.7"))[0] == 403
        async with endpoint.http.post(f"{endpoint.origin}/metrics") as response:
            assert response.status == 405


async def test_metrics_require_the_token_if_one_is_configured() -> None:
    async with http_process("--metrics", "--token", TOKEN) as endpoint:
        assert (await scrape(endpoint))[0] == 401
        assert (await scrape(endpoint, authorization=f"Bearer {TOKEN}"))[0] == 200


async def test_without_the_flag_the_metrics_path_is_not_found() -> None:
    async with http_process() as endpoint:
        assert (await scrape(endpoint))[0] == 404


async def test_metrics_can_be_served_on_a_port_of_their_own() -> None:
    async with http_process("--metrics-listen", "127.0.0.1:0") as endpoint:
        found = re.search(r"metrics_listen url=(\S+)", "".join(endpoint.log))
        assert found, endpoint.log
        assert (await scrape(endpoint))[0] == 404
        assert (await scrape(endpoint, found[1]))[0] == 200
        assert (await scrape(endpoint, found[1], host="evil.example"))[0] == 421
        assert (await scrape(endpoint, found[1].replace("/metrics", "/mcp")))[0] == 404


async def test_each_worker_has_a_metrics_port_of_its_own() -> None:
    first = free_port()
    async with http_process("--workers", "2", "--metrics-listen", f"127.0.0.1:{first}") as endpoint:
        replicas = set()
        for number in range(2):
            status, text = await scrape(endpoint, f"http://127.0.0.1:{first + number}/metrics")
            assert status == 200
            replicas |= set(re.findall(r'emceepee_sessions\{replica="(\d+)"\}', text))
        assert replicas == {"0", "1"}
