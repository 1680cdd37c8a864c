"""Tokens as they are given on the command line or in the variable."""

import re

# The = signs at the end of a base64 token are its own.
NAMED_TOKEN = re.compile(r"(?P<name>[A-Za-z][\w.@-]*)=(?P<token>[^=].*)", re.DOTALL)


def bare_token(text: str) -> str:
    """Of a token as `serve` takes it, without the name."""
    found = NAMED_TOKEN.fullmatch(text.strip())
    return found["token"] if found else text.strip()
