"""Rules apply when a server is added: SECURITY.md's statements about earlier servers."""

from pathlib import Path

from support.callers.http_process import http_process
from support.server_programs.stdio_entries import stdio_server

TOKEN = "a-token-that-is-long-enough"


async def test_an_added_program_stays_after_programs_are_forbidden(tmp_path: Path) -> None:
    flags = ("--state", f"sqlite:{tmp_path / 'state.db'}", "--token", f"anna={TOKEN}")
    async with http_process(*flags, "--allow-commands") as endpoint:
        caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
        await caller.value("add_server", name="kept", **stdio_server())
    async with http_process(*flags) as endpoint:
        caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
        assert not (await caller.call("list_tools", server="kept")).get("isError")
        refused = await caller.error("add_server", name="new", **stdio_server())
        assert refused["code"] == "ERR_NOT_ALLOWED"


async def test_a_caller_with_the_name_of_a_principal_gets_the_stored_data_of_that_principal(tmp_path: Path) -> None:
    state = ("--state", f"sqlite:{tmp_path / 'state.db'}", "--allow-commands")
    async with http_process(*state, "--token", f"anna={TOKEN}") as endpoint:
        caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
        await caller.value("add_server", name="kept", **stdio_server())
    async with http_process(*state, "--token", f"ben={TOKEN}", "--token", f"anna=other-{TOKEN}") as endpoint:
        ben = await endpoint.caller(authorization=f"Bearer {TOKEN}")
        assert (await ben.value("list_servers"))["servers"] == []
        anna = await endpoint.caller(authorization=f"Bearer other-{TOKEN}")
        assert [server["name"] for server in (await anna.value("list_servers"))["servers"]] == ["kept"]
