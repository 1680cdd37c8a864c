"""What the guard found out about a request: who calls, or why it is rejected."""

from dataclasses import dataclass, field

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """Who calls. `principal` owns sessions and servers; without proof it is whoever can reach us."""

    principal: str = LOCAL
    is_proven: bool = False
    is_remote: bool = False  # from another machine, through a proxy, or for a page of another server here
    is_page: bool = False  # sent by a browser for a page

    @property
    def is_direct(self) -> bool:
        """A program on this machine that speaks to us itself."""
        return not (self.is_remote or self.is_page)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why not, in HTTP's words. `message` says what to do and never repeats a secret."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
