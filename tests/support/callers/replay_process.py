"""A real `emceepee replay FILE --listen`, spoken to as any other server over HTTP."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from support.callers.http_process import BOUND, HttpProcess, read_log


@asynccontextmanager
async def replaying(
    file: Path, *options: str, listen: str = "0", module: str = "emceepee", env: dict[str, str] | None = None
) -> AsyncIterator[HttpProcess]:
    """At the end it must stop by itself, with exit code 0, and have said nothing but where it is."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, "replay", str(file), "--listen", listen, *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=file.parent,
        env=env,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        try:
            said = (await asyncio.wait_for(process.stderr.readline(), BOUND)).decode()
            found = re.fullmatch(r"emceepee: replays \w+ at (\S+) \(Ctrl-C to stop\)\n", said)
            assert found, said
            endpoint = HttpProcess(process, found[1].replace("0.0.0.0", "127.0.0.1"), http)
            reading = asyncio.create_task(read_log(process.stderr, endpoint.log))
            yield endpoint
        finally:
            await http.close()
            if process.returncode is None:
                process.terminate()
            code = await asyncio.wait_for(process.wait(), BOUND)
    await asyncio.wait_for(reading, BOUND)
    assert (code, endpoint.log, await process.stdout.read()) == (0, [], b"")
