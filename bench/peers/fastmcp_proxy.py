"""FastMCP's proxy as its documentation shows it, in an environment of its own.

`python fastmcp_proxy.py FRONT BACK`, with FRONT and BACK as for the relay.
"""

import json
import os
import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


def main() -> None:
    front, back = sys.argv[1:]
    if back.startswith("http"):
        target = back
    else:
        command, *arguments = json.loads(back)
        target = StdioTransport(command, arguments, env=dict(os.environ))
    proxy = create_proxy(target, name="bench")
    if front == "-":
        proxy.run(transport="stdio", show_banner=False)
    else:
        proxy.run(transport="http", host="127.0.0.1", port=int(front), show_banner=False, log_level="error")


if __name__ == "__main__":
    main()
