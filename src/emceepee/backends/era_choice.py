"""Chooses the era of each call of one connection, for servers that cannot do everything in one era.

2026-07-28, but a tool cannot ask       no other call needs this era: a handshake-era link replaces this one
                                        the server runs its own tasks: that tool is called over a second link
handshake, but a tool needs a task      a 2026-07-28 link replaces this one, and the call is sent there
"""

from collections.abc import Awaitable, Callable, Mapping

from emceepee.backends.caller_errors import needs_handshake_era, request_failed
from emceepee.backends.era_memory import EraMemory, cannot_ask
from emceepee.backends.link import Link, LinkError, RpcError, ServerFacts
from emceepee.backends.side_link import SideLink
from emceepee.backends.spec import BackendSpec
from emceepee.backends.tasks.task_messages import TASKS_EXTENSION
from emceepee.errors import ExecutionFailed
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import MISSING_CLIENT_CAPABILITY, NAMED_BY


class EraChanged(Exception):
    """The request did not run, because a link of the era that it needs is replacing this one."""


class EraChoice:
    """The era choice of one connection.

    `retire` replaces a link. `dial_side` opens a second link in the handshake era.
    """

    def __init__(
        self,
        spec: BackendSpec,
        eras: EraMemory,
        retire: Callable[[Link], None],
        dial_side: Callable[[], Awaitable[Link]],
    ) -> None:
        self._spec, self._eras, self._retire = spec, eras, retire
        self.side = SideLink(dial_side)

    def needs_side(self, method: str, params: JsonObject) -> bool:
        """Return whether this call needs the handshake era while the main link stays in 2026-07-28."""
        return self._eras.is_any_split and self._eras.asks(self._spec.target, _name_of(method, params))

    async def request_aside(self, method: str, params: JsonObject, origin: object | None) -> JsonObject:
        """Make a call over the second link. Raises: RpcError, EmceepeeError."""
        try:
            return await self.side.request(method, params, origin=origin)
        except LinkError as error:  # a failure of the second link says nothing about the first
            raise request_failed(self._spec.name, method, error) from error
        except TimeoutError:
            raise ExecutionFailed(
                f'Server "{self._spec.name}" did not answer when emceepee connected to it in an earlier protocol '
                f"version, which {method} needs. Nothing ran there. Call again.",
                details={"server": self._spec.name},
            ) from None

    def check_words(self, link: Link, method: str, params: JsonObject, words: str, answer: JsonObject) -> None:
        """Raises: EmceepeeError if the words say that the server cannot ask in 2026-07-28."""
        if not cannot_ask(words) or self._spec.mode != "auto":
            return
        target = self._spec.target
        is_split = _has_tasks(link.facts) or self._eras.is_split(target)
        if is_split:
            self._eras.split(target, _name_of(method, params))
        else:
            self._eras.correct(target)
            self._retire(link)
        raise needs_handshake_era(self._spec.name, words, answer, is_split=is_split)

    def check_refusal(self, link: Link, method: str, error: RpcError) -> None:
        """Check a refusal on a handshake-era link.

        Raises:
            EraChanged: the call needs 2026-07-28, and the server speaks it.
            EmceepeeError: it may, and the operator's `mode` forbids it.
        """
        if error.code != MISSING_CLIENT_CAPABILITY:
            return
        if self._spec.mode == "auto" and self._eras.take_back(self._spec.target):
            self._retire(link)
            raise EraChanged
        if self._spec.mode == "legacy":
            raise ExecutionFailed(
                f'Server "{self._spec.name}" refused {method}: {error}. Its mode is "legacy", and the call may need '
                "2026-07-28: leave mode out, so that emceepee chooses the version that each call needs.",
                details={"server": self._spec.name, "error": error.error},
            )

    def forget(self) -> None:
        """Forget what the tools' errors revealed, so that the server chooses its era again."""
        self._eras.forget_correction(self._spec.target)


def _has_tasks(facts: ServerFacts) -> bool:
    extensions = facts.capabilities.get("extensions")
    return isinstance(extensions, Mapping) and TASKS_EXTENSION in extensions


def _name_of(method: str, params: JsonObject) -> str:
    return f"{method} {params.get(NAMED_BY.get(method, ''), '')}"
