"""Which servers a caller may add: starting programs and reaching into the operator's network are not for everyone."""

import asyncio
import ipaddress
import re
import socket
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.errors import NotAllowed

_PORT = re.compile(r":(?P<port>[0-9*?]+)$")
_DEFAULT_PORT = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AddServerPolicy:
    """Callers on this machine may add anything, unless URLs are listed; others only what the operator allows."""

    remote_commands: bool = False
    urls: tuple[str, ...] = ()

    async def check(self, spec: BackendSpec, *, is_remote: bool) -> None:
        """Raises: NotAllowed."""
        if isinstance(spec.target, StdioTarget):
            if is_remote and not self.remote_commands:
                raise NotAllowed(
                    "Starting programs is not allowed to callers from other machines. The operator can allow it with "
                    "--allow-commands, or put the server into the configuration file."
                )
            return
        url = spec.target.url
        if any(_matches(url, pattern) for pattern in self.urls):
            return
        if self.urls:
            raise NotAllowed("This address is not among those that the operator allows (--allow-url).")
        if is_remote and await _is_private(urlsplit(url).hostname or ""):
            raise NotAllowed(
                "Addresses in private networks are not allowed to callers from other machines. The operator can allow "
                "them with --allow-url."
            )


def _matches(url: str, pattern: str) -> bool:
    """Part by part, so that a * for the port cannot swallow the end of another host's name."""
    given, allowed = urlsplit(url), urlsplit(pattern)
    if "@" in given.netloc or given.scheme != allowed.scheme or ".." in unquote(given.path):
        return False
    host, port = _place(given.netloc, given.scheme)
    wanted_host, wanted_port = _place(allowed.netloc, allowed.scheme)
    path_fits = not allowed.path or fnmatchcase(given.path, allowed.path)
    return fnmatchcase(host, wanted_host) and fnmatchcase(port, wanted_port) and path_fits


def _place(netloc: str, scheme: str) -> tuple[str, str]:
    """Host and port, each a text or a glob."""
    found = _PORT.search(netloc)
    if found is None:
        return netloc.lower(), _DEFAULT_PORT.get(scheme, "")
    return netloc[: found.start()].lower(), found["port"]


async def _is_private(host: str) -> bool:
    """Whether any address of the host is not a public one; a name that cannot be looked up counts as private."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # a name that cannot even be asked for is a ValueError
        return True
    return any(not ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_global for address in found)
