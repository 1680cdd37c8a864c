"""Which servers a caller may add: starting programs and reaching into the operator's network are not for everyone."""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.errors import NotAllowed


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
        if any(fnmatchcase(url, pattern) for pattern in self.urls):
            return
        if self.urls:
            raise NotAllowed("This address is not among those that the operator allows (--allow-url).")
        if is_remote and await _is_private(urlsplit(url).hostname or ""):
            raise NotAllowed(
                "Addresses in private networks are not allowed to callers from other machines. The operator can allow "
                "them with --allow-url."
            )


async def _is_private(host: str) -> bool:
    """Whether any address of the host is not a public one; a name that cannot be looked up counts as private."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return any(not ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_global for address in found)
