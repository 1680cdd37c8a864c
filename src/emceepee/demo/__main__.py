"""`python -m emceepee.demo` serves one client on standard input and output."""

import asyncio

from emceepee.demo.server import serve_stdio

asyncio.run(serve_stdio())
