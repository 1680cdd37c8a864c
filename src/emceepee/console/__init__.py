"""The web console for people: a page that shows what happens and lets a person answer.

May import sessions and below, and the guard; never tools, nor the MCP SDK: the page is a caller at /mcp like any other.
Start at `app.py`, which serves the routes; `api.py` is what the page asks for, `feed.py` what it is sent. What other
replicas have comes by `peers.py`.
The page itself is in `page/`, from `app.js` on; what it is sent has its types in `wire.d.ts`.
"""
