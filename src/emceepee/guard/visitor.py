"""Who is at the door, once the guard has let them in or turned them away."""

from dataclasses import dataclass, field

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Someone who was let in. `principal` owns sessions and servers; an unproven one is nobody in particular."""

    principal: str = LOCAL
    is_proven: bool = False
    is_remote: bool = False


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Why not, in HTTP's words. `message` says what to do and never repeats a secret."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
