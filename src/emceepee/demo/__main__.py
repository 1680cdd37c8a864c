"""`emceepee-demo`, or `python -m emceepee.demo`, serves one client on standard input and output."""

import asyncio

from emceepee.demo.server import serve_stdio


def main() -> None:
    asyncio.run(serve_stdio())


if __name__ == "__main__":
    main()
