"""What a script asks for: answered at once where no call is needed, else a call that waits until all of it waits."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

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
from emceepee.codemode.server_modules import PACKAGE, ServerModules
from emceepee.codemode.values import NotJson, ScriptLog, as_json
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session

if TYPE_CHECKING:
    from pydantic_monty import AsyncFunctionSnapshot


class CallQueue:
    """The calls of one script that were made, but not begun. `made` counts all that it ever made."""

    def __init__(self, session: Session, log: ScriptLog, modules: ServerModules, *, made: int = 0) -> None:
        self.modules, self.made = modules, made
        self._session, self._log, self._limits = session, log, session.limits
        self._queued: list[PendingCall] = []

    def __len__(self) -> int:
        return len(self._queued)

    def calls(self) -> list[PendingCall]:
        return list(self._queued)

    def take(self) -> list[PendingCall]:
        """They are begun now."""
        queued, self._queued = self._queued, []
        return queued

    def answer(self, asked: "AsyncFunctionSnapshot") -> JsonObject:
        """As the sandbox takes it; for a call, that its answer will come. Raises: ScriptFailure."""
        try:
            return self._accept(asked)
        except (BadScriptCall, NotJson) as error:
            return raised("TypeError", f"{asked.function_name}: {error}")

    def _accept(self, asked: "AsyncFunctionSnapshot") -> JsonObject:
        """Raises: BadScriptCall, NotJson, ScriptFailure."""
        name, args, kwargs = str(asked.function_name), asked.args, asked.kwargs
        if asked.is_os_function:
            if name == "asyncio.sleep":
                return self._put_sleep(asked.call_id, args[0])
            return raised("PermissionError", f"{name} is not for scripts: they can only call. {_hint(name)}".strip())
        module, _, member = name.partition(".")
        if module == PACKAGE and (function := self.modules.find(name)) is not None:
            given = function.arguments(bind((), args, {}) | as_json(kwargs))  # nothing by position
            arguments = {"server": function.server, "tool": function.tool, "args": given}
            return self._put(asked.call_id, CALL_TOOL, arguments)
        method = METHODS.get(member)
        if module != MODULE or method is None:
            return raised("NameError", f"name '{name}' is not defined")
        if method == LOG:
            self._log.write_line(" ".join(str(as_json(value)) for value in args))
            return returned(None)
        if method == SLEEP:
            return self._put_sleep(asked.call_id, bind(("seconds",), args, kwargs).get("seconds"))
        if method == OWN_TOOL:
            return self._put_own(asked.call_id, bind(("name", "args"), args, kwargs))
        binding = BINDINGS[method]
        arguments = dict(binding.defaults) | bind(binding.parameters, args, kwargs)
        return self._put(asked.call_id, binding.tool, arguments, binding.key)

    def _put_own(self, number: int, given: JsonObject) -> JsonObject:
        name, arguments = given.get("name"), given.get("args", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise BadScriptCall("give the name of a tool of emceepee and a dict of its arguments")
        if name == THIS_TOOL:
            raise BadScriptCall("a script cannot start another one")
        return self._put(number, name, arguments)

    def _put_sleep(self, number: int, seconds: Any) -> JsonObject:
        most = self._limits.longest_task_ttl_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= most:
            raise BadScriptCall(f"seconds: a number from 0 to {most:g}")
        wakes_at = (self._session.clock.now() + timedelta(seconds=seconds)).isoformat()
        self._queued.append(PendingCall(number=number, function=SLEEP, arguments={}, wakes_at=wakes_at))
        return {"future": ...}

    def _put(self, number: int, tool: str, arguments: JsonObject, key: str | None = None) -> JsonObject:
        self.made += 1
        if self.made > (most := self._limits.calls_per_script):
            self.made = most
            raise ScriptFailure("CallLimit", f"The script made more than {most} calls, so it was ended.")
        call_id = self._session.ids.new()
        self._queued.append(PendingCall(number=number, function=tool, arguments=arguments, key=key, call_id=call_id))
        return {"future": ...}


def _hint(name: str) -> str:
    return "Use await asyncio.sleep(seconds)." if name == "time.sleep" else ""
