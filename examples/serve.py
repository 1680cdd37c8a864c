"""emceepee over HTTP with the demonstration server behind it: `make serve` runs this, and Ctrl-C ends it."""

import json
import os
import sys

PORT = os.environ.get("PORT", "8080")
SOURCE_TREE = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
DEMO = {
    "command": sys.executable,
    "args": ["-P", "-m", "emceepee.demo"],
    "env": SOURCE_TREE,
    "description": "things to try: a sum, a slow dig, a table to book, a haiku",
}
CONFIG = {"mcpServers": {"demo": DEMO}}

INVITATION = f"""
emceepee will listen on http://127.0.0.1:{PORT}/mcp with one server behind it, "demo".

Put it into a client:
  Claude Code   claude mcp add --transport http emceepee http://127.0.0.1:{PORT}/mcp
  others        {{"mcpServers": {{"emceepee": {{"url": "http://127.0.0.1:{PORT}/mcp"}}}}}}

Open the link that is printed below in a browser to watch requests and answer questions.

Then ask for:
  "Which servers are there, and which tools do they have?"
  "Use the demo server to add 2 and 40."                        a quick call
  "Dig for ten seconds, but do not wait longer than three."     a call that becomes a task
  "Book a table with the demo server."                          a call that asks you something
  "Remind me in a minute."                                      a timer

More servers: ask for add_server, or write a file and run  emceepee serve --config FILE
What you add stays:  emceepee state  shows where. EMCEEPEE_STATE=memory make serve  keeps nothing.
"""


def main() -> None:
    print(INVITATION, flush=True)
    environment = os.environ | {"EMCEEPEE_CONFIG": json.dumps(CONFIG)}
    os.execve(sys.executable, [sys.executable, "-P", "-m", "emceepee", "serve", *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
