"""The results of the guard: the identity of a caller, or a rejection."""

from dataclasses import dataclass, field

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """The caller. `principal` owns sessions and servers. Without `is_proven`, the caller has not authenticated."""

    principal: str = LOCAL
    is_proven: bool = False
    is_remote: bool = False  # from another machine, through a proxy, or from a page of another origin
    is_page: bool = False  # a browser sent the request for a page

    @property
    def is_direct(self) -> bool:
        """Whether a program on this machine calls directly, without a proxy or a page."""
        return not (self.is_remote or self.is_page)


@dataclass(frozen=True, slots=True)
class Rejection:
    """An HTTP error response for a rejected request. `message` advises the caller and never contains a secret."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
