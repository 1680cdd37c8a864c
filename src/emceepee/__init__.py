"""emceepee: an MCP proxy that gives any tool-capable client the whole protocol through a fixed set of tools.

Start reading at `app/session_parts.py` (the parts, and the order in which they close) and `server/dispatch.py` (the
path of a call).
"""

__version__: str


def __getattr__(name: str) -> str:
    """Look up the version on first use, because the lookup imports much of the standard library."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    globals()[name] = found = version(__name__)
    return found
