"""The web console: a page that shows live activity and lets a person answer questions.

May import guard, sessions, and below, but never tools: the page calls tools at /mcp like any other caller. Read
`console_app.py` first, which declares the routes. `api.py` answers the page's requests, `feed.py` streams live updates,
and `peers.py` reaches other replicas. The page is in `page/` and begins at `app.js`; `wire.d.ts` declares the types of
its data.
"""
