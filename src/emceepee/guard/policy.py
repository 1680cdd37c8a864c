"""Decides which servers a caller may add, because servers can be local programs or be in the operator's network."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from emceepee.backends.http1.origin import is_unix_url
from emceepee.backends.http1.public_addresses import is_public
from emceepee.backends.http1.resolver import Lookup, ask_system
from emceepee.backends.spec import ROOT_SCHEME, BackendSpec, HttpTarget, ServerEntry
from emceepee.errors import InvalidArguments, NotAllowed

_PORT = re.compile(r":(?P<port>[0-9*?]+)$")
_DEFAULT_PORT = {"http": "80", "https": "443"}
# The compared host must be the connected host: no user name, no second port, no text that parsers read differently.
_HOST = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]").fullmatch
_DISGUISED = re.compile(r"(?i)%(2e|2f|5c|25|[01][0-9a-f]|7f)|[\\\x00-\x20\x7f]|(^|/)\.\.?(/|$)").search


@dataclass(frozen=True, slots=True, kw_only=True)
class AddServerPolicy:
    """The rules for adding servers.

    Callers on this machine may add any server. Remote callers may add servers at public addresses only, and may start
    programs only with `remote_commands`. If the operator lists `urls`, every caller may add HTTP servers at these
    URLs only. If authentication is required, no caller may start programs without `remote_commands`, because a proxy
    can make a remote caller appear local.
    """

    remote_commands: bool = False
    asks_for_proof: bool = False
    urls: tuple[str, ...] = ()
    lookup: Lookup = ask_system

    async def admit(self, entry: ServerEntry, *, is_remote: bool) -> BackendSpec:
        """Return the server's specification with this caller's restrictions. Raises: NotAllowed, InvalidArguments."""
        if is_remote and not all(root.startswith(ROOT_SCHEME) for root in entry.roots or ()):
            # A path would be resolved on this machine and reveal its files to remote callers.
            raise InvalidArguments(f"roots: callers from other machines must use {ROOT_SCHEME}/… addresses.")
        spec = entry.spec()
        await self.check(spec, is_remote=is_remote)
        if not isinstance(spec.target, HttpTarget) or not (is_remote or self.urls):
            return spec
        return replace(spec, target=replace(spec.target, is_public=not self.urls, is_guarded=True))

    async def check(self, spec: BackendSpec, *, is_remote: bool) -> None:
        """Raises: NotAllowed."""
        if not isinstance(spec.target, HttpTarget):
            if (is_remote or self.asks_for_proof) and not self.remote_commands:
                who = "callers from elsewhere" if is_remote else "callers that need a token or a login"
                raise NotAllowed(
                    f"Starting programs is not allowed to {who}. The operator can allow it with --allow-commands, or "
                    "put the server into the configuration file."
                )
            return
        url = spec.target.url
        if is_unix_url(url) and (is_remote or (self.asks_for_proof and not self.remote_commands)):
            who = "callers from elsewhere" if is_remote else "callers that need a token or a login"
            raise NotAllowed(
                f"Unix sockets are not allowed to {who}. The operator can put the server into the configuration file."
            )
        if is_listed(url, self.urls):
            return
        if self.urls:
            raise NotAllowed("The operator does not allow this address (--allow-url).")
        if is_remote and await self._is_private(urlsplit(url).hostname or ""):
            raise NotAllowed(
                "Addresses in private networks are not allowed to callers from other machines. The operator can allow "
                "them with --allow-url."
            )

    async def _is_private(self, host: str) -> bool:
        """Return whether any address of the host is private. A name that cannot be resolved counts as private.

        This check only produces an early error. The connector checks the address again at each connection.
        """
        try:
            found = await self.lookup(host, 0)
        except (OSError, ValueError):  # an invalid name raises ValueError
            return True
        return not all(is_public(str(address[0])) for _, address in found)


def is_listed(url: str, patterns: Iterable[str]) -> bool:
    """Return whether --allow-url allows this address."""
    return any(_matches(url, pattern) for pattern in patterns)


def _matches(url: str, pattern: str) -> bool:
    """Match each part of the URL separately, so that a * for the port cannot match the end of another host name."""
    given, allowed = urlsplit(url), urlsplit(pattern)
    if given.scheme != allowed.scheme or _DISGUISED(given.path):
        return False
    host, port = _place(given.netloc, given.scheme)
    if not _HOST(host):
        return False
    wanted_host, wanted_port = _place(allowed.netloc, allowed.scheme)
    path_fits = not allowed.path or fnmatchcase(given.path, allowed.path)
    host_fits = host == wanted_host or fnmatchcase(host, wanted_host)  # == for IPv6, whose brackets are not a pattern
    return host_fits and fnmatchcase(port, wanted_port) and path_fits


def _place(netloc: str, scheme: str) -> tuple[str, str]:
    """Return the host and the port, each of which may be a glob."""
    found = _PORT.search(netloc)
    if found is None:
        return netloc.lower(), _DEFAULT_PORT.get(scheme, "")
    return netloc[: found.start()].lower(), found["port"]
