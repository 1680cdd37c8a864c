"""`emceepee-demo`, or `python -m emceepee.demo`, serves one client on standard input and output."""

import asyncio
import sys

from emceepee.demo.server import DemoConversation
from emceepee.miniserver.stdio import serve_on_stdio


def main() -> None:
    if sys.stdin.isatty():
        sys.stderr.write("emceepee-demo: serving MCP on standard input and output. Press Ctrl-C to stop.\n")
    asyncio.run(serve_on_stdio(DemoConversation(), stdin=sys.stdin.fileno(), stdout=sys.stdout.fileno()))


if __name__ == "__main__":
    main()
