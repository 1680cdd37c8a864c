"""The format of tokens on the command line and in the environment variable."""

import re

# A token does not start with =, because the = signs at the end of a base64 token belong to the token.
NAMED_TOKEN = re.compile(r"(?P<name>[A-Za-z][\w.@-]*)=(?P<token>[^=].*)", re.DOTALL)


def bare_token(text: str) -> str:
    """Return a token without its name; `serve` accepts NAME=TOKEN."""
    found = NAMED_TOKEN.fullmatch(text.strip())
    return found["token"] if found else text.strip()
