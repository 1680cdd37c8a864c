"""`emceepee doctor` names each fault and its remedy: planted in real servers and found by a real process."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support.backends.web_backend import a_web_backend
from support.callers.http_process import http_process
from support.server_programs.stdio_entries import stdio_server
from support.system.authorization_server import an_authorization_server
from support.system.certificates import Authority, server_context
from support.system.ports import free_port

BOUND = 90.0  # seconds that the whole may take on a busy machine
TOKEN = "a-token-that-is-long-enough"


async def run_doctor(folder: Path, servers: dict[str, Any], *flags: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the JSON output."""
    file = folder / "config.json"
    if not file.exists():
        file.write_text(json.dumps({"mcpServers": servers}))
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "NO_PROXY": "*"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", "doctor", "--json", "--timeout", "20", "--config", str(file), *flags),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(BOUND):
        out, err = await process.communicate()
    assert process.returncode is not None
    assert out, err.decode()
    return process.returncode, json.loads(out)


async def only_finding(folder: Path, *flags: str, **entry: Any) -> dict[str, Any]:
    """Of a server that cannot be used."""
    code, told = await run_doctor(folder, {"it": entry}, *flags)
    [server] = told["servers"]
    [finding] = server["findings"]
    assert (code, server["status"]) == (1, "problem"), told
    return dict(finding)


async def test_doctor_reports_working_servers_as_working(tmp_path: Path) -> None:
    code, told = await run_doctor(tmp_path, {"good": stdio_server(), "off": {"command": "never", "disabled": True}})
    assert code == 0
    good, off = told["servers"]
    assert (good["status"], good["findings"], good["tools"] > 0) == ("ok", [], True)
    assert off["status"] == "disabled"


async def test_doctor_names_a_missing_command(tmp_path: Path) -> None:
    finding = await only_finding(tmp_path, command="no-such-program-here")
    assert finding == {
        "code": "missing_command",
        "message": "the program no-such-program-here was not found",
        "remedy": "install it, or set command to the full path of the program",
    }


async def test_doctor_names_an_interpreter_without_the_server_module(tmp_path: Path) -> None:
    finding = await only_finding(tmp_path, command=sys.executable, args=["-S", "-E", "-m", "mcp_server_time"])
    assert finding["code"] == "wrong_interpreter"
    assert sys.executable in finding["message"]
    assert "No module named mcp_server_time" in finding["message"]


async def test_doctor_names_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    finding = await only_finding(tmp_path, command=str(script))
    assert finding["code"] == "wrong_interpreter"
    assert finding["message"] == f"{script} requires the interpreter /no/such/python, which does not exist"


async def test_doctor_names_the_key_of_an_unresolved_reference(tmp_path: Path) -> None:
    finding = await only_finding(tmp_path, **stdio_server(), env={"KEY": "${env:NOT_SET_ANYWHERE}"})
    assert finding["code"] == "bad_reference"
    assert finding["message"].startswith("env.KEY: the environment has no variable NOT_SET_ANYWHERE; set it")


async def test_doctor_names_a_port_without_a_listener(tmp_path: Path) -> None:
    port = free_port()
    finding = await only_finding(tmp_path, url=f"http://127.0.0.1:{port}/mcp")
    assert (finding["code"], finding["message"]) == ("closed_port", f"nothing listens at 127.0.0.1:{port}")


async def test_doctor_names_a_rejected_token_without_showing_it(tmp_path: Path) -> None:
    async with http_process("--token", TOKEN) as server:
        good = {"url": server.url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        assert (await run_doctor(tmp_path, {"it": good}))[0] == 0
        (tmp_path / "config.json").unlink()
        finding = await only_finding(
            tmp_path, url=server.url, headers={"Authorization": "Bearer wr0ng-and-long-enough"}
        )
    assert finding["code"] == "wrong_token"
    assert finding["message"] == "it rejected the credentials in headers.Authorization (HTTP 401)"


async def test_doctor_distinguishes_a_server_that_requires_a_login_from_a_broken_one(tmp_path: Path) -> None:
    async with an_authorization_server() as server:
        code, told = await run_doctor(tmp_path, {"it": {"url": server.resource}})
    [finding] = told["servers"][0]["findings"]
    assert (code, told["servers"][0]["status"], finding["code"]) == (0, "warning", "wants_login")
    assert finding["remedy"].startswith("no action needed: emceepee asks for the login when the server is first used.")


async def test_doctor_names_a_server_that_prints_to_standard_output(tmp_path: Path) -> None:
    code, told = await run_doctor(tmp_path, {"it": stdio_server("noisy")})
    [finding] = told["servers"][0]["findings"]
    assert (code, told["servers"][0]["status"], finding["code"]) == (0, "warning", "prints_to_stdout")
    assert "starting up..." in finding["message"]


async def test_doctor_names_a_program_that_prints_instead_of_speaking_mcp(tmp_path: Path) -> None:
    finding = await only_finding(tmp_path, command="echo", args=["Usage: server --stdio"])
    assert finding["code"] == "prints_to_stdout"
    assert "Usage: server --stdio" in finding["message"]


async def test_doctor_names_a_certificate_of_an_unknown_ca_until_that_ca_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    async with a_web_backend(tls=server_context(authority.issue("localhost"))) as backend:
        url = f"https://localhost:{backend.port}/mcp"
        finding = await only_finding(tmp_path, url=url)
        assert finding["code"] == "unknown_ca"
        assert "its certificate is not valid" in finding["message"]
        assert "tls.ca" in finding["remedy"]
        assert (await run_doctor(tmp_path, {}, "--ca-bundle", str(authority.file)))[0] == 0


async def test_doctor_quotes_a_server_that_exits_at_once(tmp_path: Path) -> None:
    finding = await only_finding(tmp_path, **stdio_server("exits=3"))
    assert finding["code"] == "ends_at_start"
    assert "set THE_TOKEN and try again" in finding["message"]


async def test_doctor_fixes_the_path_of_a_program_and_undoes_the_fix(tmp_path: Path) -> None:
    """A client started by a desktop has a short PATH."""
    place = tmp_path / ".local" / "bin" / "my-server"
    place.parent.mkdir(parents=True)
    good = stdio_server()
    place.write_text(f"#!/bin/sh\nexec {good['command']} {' '.join(good['args'])}\n")
    place.chmod(0o755)
    before = '{ "mcpServers": { "it": {"command": "my-server", "env": {"API_KEY": "s3cret"}} } }'
    file = tmp_path / "config.json"
    file.write_text(before)
    file.chmod(0o644)
    code, told = await run_doctor(tmp_path, {}, "--fix")
    assert (code, told["servers"][0]["fixed"]) == (0, f"changed its command to {place}")
    assert [finding["code"] for finding in told["findings"]] == ["open_to_others"]
    assert file.stat().st_mode & 0o777 == 0o600
    code, told = await run_doctor(tmp_path, {})
    assert (code, told["servers"][0]["status"], told["findings"]) == (0, "ok", [])


@pytest.mark.parametrize("content", ["{oops", "[]"])
async def test_doctor_explains_a_broken_configuration_in_one_sentence(content: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", "doctor", "--config", str(file)), stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(BOUND):
        _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode().startswith(f"emceepee: {file}: ")


async def test_doctor_suggests_a_shared_server_and_writes_the_setting_only_after_consent(
    tmp_path: Path,
) -> None:
    time = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}
    file = tmp_path / "config.json"
    before = json.dumps({"mcpServers": {"time": time, "other": stdio_server()}}, indent=1).encode()
    file.write_bytes(before)
    code, told = await run_doctor(tmp_path, {}, "--fix")
    [suggestion] = told["servers"][0]["suggestions"]
    assert (code, suggestion["code"], suggestion["setting"]) == (0, "could_be_shared", {"sharing": "shared"})
    assert "if it stores no state per client" in suggestion["message"]
    assert (told["servers"][0]["status"], told["servers"][1]["suggestions"]) == ("ok", [])
    assert file.read_bytes() == before
    code, told = await run_doctor(tmp_path, {}, "--fix", "--yes")
    assert (code, told["servers"][0]["fixed"]) == (0, "all sessions now share it")
    assert json.loads(file.read_bytes())["mcpServers"]["time"] == time | {"sharing": "shared"}
    code, told = await run_doctor(tmp_path, {})
    assert told["servers"][0]["suggestions"] == []
