"""The balancers that tests put before replicas are plain ones: else what is tested through them would prove little."""

from pathlib import Path

import aiohttp
import pytest

from support.system.balancers import BALANCERS, balancer
from support.system.upstreams import running_upstreams

pytestmark = pytest.mark.parametrize("name", BALANCERS)


async def test_each_request_goes_to_the_next_replica_proven_and_as_a_remote_one(name: str, tmp_path: Path) -> None:
    async with (
        running_upstreams("first", "second", "third") as upstreams,
        balancer(name, [f"http://{each.address}" for each in upstreams], tmp_path, token="a token") as url,
        aiohttp.ClientSession() as http,
    ):
        answers = []
        for _ in range(9):  # on one connection
            async with http.post(url, data=b"{}", headers={"mcp-session-id": "the same"}) as response:
                answers.append(await response.text())
        assert answers == [each.name for each in upstreams] * 3
        headers = upstreams[0].received[0].headers
        assert headers["authorization"] == "Bearer a token"
        assert headers["x-forwarded-for"] == "127.0.0.1"
        assert headers["x-forwarded-proto"] == "http"
        assert url == f"http://{headers['host']}/mcp"


async def test_what_a_replica_refuses_is_told_to_the_caller_and_asked_of_no_other(name: str, tmp_path: Path) -> None:
    async with (
        running_upstreams("first", "second") as (first, second),
        balancer(name, [f"http://{each.address}" for each in (first, second)], tmp_path, token="a token") as url,
        aiohttp.ClientSession() as http,
    ):
        first.respond = first.refuse
        statuses = []
        for _ in range(4):
            async with http.post(url, data=b"{}") as response:
                statuses.append(response.status)
        assert statuses == [503, 200, 503, 200]
        assert len(second.received) == 2
