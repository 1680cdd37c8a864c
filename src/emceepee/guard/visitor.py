"""Who is at the door, once the guard has let them in or turned them away."""

from dataclasses import dataclass, field

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Someone who was let in. `principal` owns sessions and servers; an unproven one is nobody in particular."""

    principal: str = LOCAL
    is_proven: bool = False
    is_remote: bool = False  # from another machine, through a proxy, or for a page of another server here
    is_page: bool = False  # sent by a browser for a page

    @property
    def is_direct(self) -> bool:
        """A program on this machine that speaks to us itself."""
        return not (self.is_remote or self.is_page)


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Why not, in HTTP's words. `message` says what to do and never repeats a secret."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
