"""Implementations and wrappers of a link, which is one live connection to a backend.

May import the modules of `backends` that describe a link. The interface is `../link.py`. Read `duplex_link.py` first:
JSON-RPC over any pair of streams. `observed_link.py` times requests for telemetry, and `shared_links.py` lets several
sessions use one link, each through its own `link_view.py`.
"""
