"""emceepee on pipes with one server in a configuration file, perhaps behind a proxy with a password."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.system.forward_proxies import PASSWORD, USER


@asynccontextmanager
async def configured_emceepee(
    folder: Path, *arguments: str, proxy: str = "", **server: Any
) -> AsyncIterator[EmceepeeProcess]:
    """Run emceepee with one server in a file, and optionally a proxy. Its log must not contain a password."""
    file, log = folder / "servers.json", folder / "log"
    file.write_text(json.dumps({"mcpServers": {"tracker": server}}))
    env = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": "", "https_proxy": proxy, "http_proxy": proxy}
    options = ("--config", str(file), "--log-file", str(log), "--log-level", "debug", *arguments)
    async with emceepee(*options, env=env) as caller:
        await caller.initialize()
        yield caller
    for secret in (PASSWORD, quote(PASSWORD), "wr0ng"):
        assert secret not in log.read_text()


def proven(address: str, password: str = PASSWORD) -> str:
    return f"http://{USER}:{quote(password)}@{address}"
