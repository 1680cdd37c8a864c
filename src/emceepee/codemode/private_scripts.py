"""Scripts that answer a server's question. Their source, calls, and snapshots are neither logged, stored, nor shown.

The source, a variable, or the arguments of a call may contain the answer. To answer, a script must contain the literal
name of the answering tool, so emceepee recognizes private scripts before it records or runs them.
"""

import re

ANSWERING_TOOLS = ("respond_to_elicitation", "respond_to_sampling")
_LITERAL = re.compile(r"""Literal\[(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\]"'])*\]?""")


def gives_answers(code: str) -> bool:
    """Whether this source names a tool that answers questions."""
    return any(name in code for name in ANSWERING_TOOLS)


def without_literals(message: str) -> str:
    """Remove the script's literals from a message of the type check that quotes them."""
    return _LITERAL.sub("Literal[…]", message)
