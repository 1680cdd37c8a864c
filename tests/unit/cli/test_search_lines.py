"""The output of `emceepee search`."""

import argparse
from typing import Any, cast

import pytest

from emceepee.cli.use.query_command import _search
from emceepee.cli.use.tool_caller import ToolCaller


class Finds:
    """Answers every search with the same results."""

    def __init__(self, *results: dict[str, Any]) -> None:
        self.results = list(results)

    async def value(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"results": self.results}


async def test_search_prints_a_server_under_the_name_that_other_commands_accept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = Finds(
        {"server": "time", "name": "now", "module": "time_", "signature": "time_.now(zone?)"},
        {"server": "github", "name": "list", "signature": "github.list()"},
    )
    options = argparse.Namespace(words=["now"], type="tools", limit=5, server=None, json=False, tag=None)
    assert await _search(options, cast(ToolCaller, found)) == 0
    assert capsys.readouterr().out.splitlines() == ["time.now(zone?)", "github.list()"]
