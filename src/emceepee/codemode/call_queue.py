"""The requests of a script. Calls queue until the whole script waits; other requests are answered at once."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.codemode.answers import raised, returned
from emceepee.codemode.bindings import (
    BINDINGS,
    CALL_TOOL,
    LOG,
    METHODS,
    MODULE,
    OWN_TOOL,
    SLEEP,
    THIS_TOOL,
    BadScriptCall,
    bind,
)
from emceepee.codemode.failures import ScriptFailure
from emceepee.codemode.kept_script import PendingCall
from emceepee.codemode.private_scripts import ANSWERING_TOOLS, gives_answers
from emceepee.codemode.script_log import ScriptLog
from emceepee.codemode.script_workers import CALLS_PER_SCRIPT
from emceepee.codemode.server_modules import PACKAGE, ServerModules
from emceepee.codemode.tool_access import ToolAccess
from emceepee.codemode.values import Conversions, NotJson, Size, as_json, budget_of, excess
from emceepee.sessions.session import Session
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from pydantic_monty import AsyncFunctionSnapshot

MOST_LOGGED = 1000  # values in one line


class CallQueue:
    """Calls that a script made and that have not begun. `made` counts all its calls so far.

    `under_way` returns the calls that have begun and are not answered yet. `code` is the source of the script.
    """

    def __init__(
        self,
        session: Session,
        log: ScriptLog,
        modules: ServerModules,
        *,
        tools: ToolAccess,
        conversions: Conversions,
        under_way: Callable[[], Iterable[PendingCall]],
        code: str,
        made: int = 0,
    ) -> None:
        self.modules, self.made = modules, made
        self._session, self._log, self._limits = session, log, session.limits
        self._tools, self._conversions, self._under_way = tools, conversions, under_way
        self._gives_answers = gives_answers(code)
        self._queued: list[PendingCall] = []

    def __len__(self) -> int:
        return len(self._queued)

    def calls(self) -> list[PendingCall]:
        return list(self._queued)

    def take(self) -> list[PendingCall]:
        """Return the queued calls and empty the queue."""
        queued, self._queued = self._queued, []
        return queued

    async def answer(self, asked: "AsyncFunctionSnapshot") -> JsonObject:
        """Return the answer in the sandbox's format: a value, an exception, or a future for a call.

        Raises: ScriptFailure.
        """
        name = asked.function_name
        try:
            return await self._accept(asked)
        except (BadScriptCall, NotJson) as error:
            return raised("TypeError", f"{name}: {error}")
        except OverBudget as error:
            words = f"{name}: the arguments of all calls that wait for an answer take {excess(error)}."
            return raised("ValueError", f"{words} Send less at a time.")

    async def _accept(self, asked: "AsyncFunctionSnapshot") -> JsonObject:
        """Raises: BadScriptCall, NotJson, OverBudget, ScriptFailure."""
        name, args, kwargs = str(asked.function_name), asked.args, asked.kwargs
        if asked.is_os_function:
            if name == "asyncio.sleep":
                return self._put_sleep(asked.call_id, args[0])
            return raised("PermissionError", f"{name} is not for scripts: they can only call. {_hint(name)}".strip())
        module, _, member = name.partition(".")
        if module == PACKAGE and (function := self.modules.find(name)) is not None:
            if args:
                raise BadScriptCall("takes keyword arguments only")
            given, size = await self._converted(lambda budget: as_json(kwargs, budget))
            arguments = {"server": function.server, "tool": function.tool, "args": function.arguments(given)}
            return self._put(asked.call_id, CALL_TOOL, arguments, size)
        method = METHODS.get(member)
        if module != MODULE or method is None:
            return raised("NameError", f"name '{name}' is not defined")
        if method == LOG:
            if len(args) > MOST_LOGGED:
                raise BadScriptCall(f"takes at most {MOST_LOGGED} values")
            self._log.write_values(args)
            return returned(None)
        if method == SLEEP:
            given, _ = await self._converted(lambda budget: bind(("seconds",), args, kwargs, budget))
            return self._put_sleep(asked.call_id, given.get("seconds"))
        if method == OWN_TOOL:
            given, size = await self._converted(lambda budget: bind(("name", "args"), args, kwargs, budget))
            return self._put_own(asked.call_id, given, size)
        binding = BINDINGS[method]
        given, size = await self._converted(lambda budget: bind(binding.parameters, args, kwargs, budget))
        return self._put(asked.call_id, binding.tool, dict(binding.defaults) | given, size, binding.key)

    async def _converted(self, convert: Callable[[Budget], JsonObject]) -> tuple[JsonObject, Size]:
        """Return the converted arguments and their size. Raises: BadScriptCall, NotJson, OverBudget."""
        budget = budget_of(self._limits.request_body_bytes)  # a script may send no more at once than any other caller
        for call in (*self._queued, *self._under_way()):
            budget.spend(*call.size)
        before = Size.of(budget)
        arguments = await self._conversions.run(convert, budget)
        return arguments, Size.of(budget).less(before)

    def _put_own(self, number: int, given: JsonObject, size: Size) -> JsonObject:
        name, arguments = given.get("name"), given.get("args", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise BadScriptCall("give the name of a tool of emceepee and a dict of its arguments")
        return self._put(number, name, arguments, size)

    def _put_sleep(self, number: int, seconds: Any) -> JsonObject:
        most = self._limits.longest_task_ttl_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= most:
            raise BadScriptCall(f"seconds: a number from 0 to {most:g}")
        wakes_at = (self._session.clock.now() + timedelta(seconds=seconds)).isoformat()
        self._queued.append(PendingCall(number=number, function=SLEEP, arguments={}, wakes_at=wakes_at))
        return {"future": ...}

    def _put(self, number: int, tool: str, arguments: JsonObject, size: Size, key: str | None = None) -> JsonObject:
        tool, arguments = self._tools.resolve(tool, arguments)
        if tool == THIS_TOOL:
            raise BadScriptCall("a script cannot start another one")
        if tool in ANSWERING_TOOLS and not self._gives_answers:
            raise BadScriptCall(
                f"spell out {tool} in the script: by that name, emceepee keeps the script out of its records"
            )
        self.made += 1
        if self.made > CALLS_PER_SCRIPT:
            self.made = CALLS_PER_SCRIPT
            raise ScriptFailure("CallLimit", f"The script made more than {CALLS_PER_SCRIPT} calls, so it was ended.")
        call_id = self._session.ids.new()
        self._queued.append(
            PendingCall(number=number, function=tool, arguments=arguments, key=key, call_id=call_id, size=size)
        )
        return {"future": ...}


def _hint(name: str) -> str:
    return "Use await asyncio.sleep(seconds)." if name == "time.sleep" else ""
