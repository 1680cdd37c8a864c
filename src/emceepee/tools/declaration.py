"""How a tool is declared: a parameter model, a docstring, one function. Everything else is derived from these."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from emceepee.backends.spec import BackendSpec
from emceepee.errors import InvalidArguments, near_names
from emceepee.json_types import JsonObject
from emceepee.sessions.calls import Call
from emceepee.sessions.session import Session
from emceepee.tools.schema import compact_schema


class Params(BaseModel):
    """A tool's parameters. Strangers are refused by name, so that a misspelt argument is never ignored."""

    model_config = ConfigDict(extra="forbid")


class NoParams(Params):
    """For tools that take nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a result tells by itself, so that the notices behind it need not."""

    ended_task: str | None = None
    created_task: str | None = None
    questions: frozenset[str] = frozenset()  # ids of the questions whose words stand in it


NOTHING_TOLD = Told()


@dataclass(frozen=True, slots=True)
class BackendResult:
    """A backend's own result, passed on as it came."""

    result: JsonObject
    told: Told = NOTHING_TOLD


@dataclass(frozen=True, slots=True)
class OwnResult:
    """A result of emceepee's whose content is more, or less, than its value as JSON."""

    content: list[JsonObject]
    value: JsonObject
    told: Told = NOTHING_TOLD


class Office(Protocol):
    """Where a caller's explicit sessions are opened, found and closed."""

    idle_ms: int  # how long an unused one is kept

    async def open(self) -> str: ...
    async def close(self, handle: str) -> None: ...
    def find(self, handle: str) -> Session: ...


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a tool may know of who called it, and how to speak to it while it waits."""

    on_progress: Callable[[JsonObject], None] | None = None
    say: Callable[[JsonObject], None] | None = None  # any notification that belongs to this request
    hang_up: Callable[[], None] | None = None  # ends the response, not the request: the caller comes back for the rest
    follow_events: Callable[[bool], None] | None = None  # whether to be told at once that something happened
    on_call: Callable[[Session, Call], None] | None = None  # told which call to a backend the request began
    is_gone: Callable[[], bool] = _never  # whether nobody would read a reply
    office: Office | None = None
    may_add: Callable[[BackendSpec], Awaitable[None]] | None = None  # raises NotAllowed


Outcome = JsonObject | BackendResult | OwnResult
Verb = Callable[[Any, Session, Caller], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the catalogue."""

    name: str
    description: str
    params: type[BaseModel]
    input_schema: JsonObject
    verb: Verb
    needs_session: bool = True
    private: frozenset[str] = frozenset()  # arguments that are shown to nobody: fields with repr=False
    carries_news: bool = True  # whether the reply gets the notices; false for the tool that is made of them

    def check(self, arguments: JsonObject) -> BaseModel:
        """Raises: InvalidArguments, naming each field that does not fit."""
        try:
            return self.params.model_validate(arguments)
        except ValidationError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: ValidationError) -> InvalidArguments:
        problems = [_problem(item, list(self.params.model_fields)) for item in error.errors(include_url=False)]
        words = "; ".join(f"{problem['argument']}: {problem['problem']}" for problem in problems)
        return InvalidArguments(f"{self.name} cannot be called like this: {words}.", details={"problems": problems})


def tool(verb: Callable[..., Awaitable[Outcome]]) -> Tool:
    """Declare a tool. The function takes its Params, the Session and, if it wants to, the Caller."""
    hints = get_type_hints(verb)
    parameters = list(inspect.signature(verb).parameters)
    params = hints[parameters[0]]
    return Tool(
        name=verb.__name__,
        description=" ".join(inspect.cleandoc(verb.__doc__ or "").split()),
        params=params,
        input_schema=compact_schema(params),
        private=frozenset(name for name, field in params.model_fields.items() if not field.repr),
        verb=verb if len(parameters) == 3 else _without_caller(verb),
    )


def tool_made_of_news(verb: Callable[..., Awaitable[Outcome]]) -> Tool:
    """Declare a tool whose own result is the news, so that its reply gets no notices."""
    return replace(tool(verb), carries_news=False)


def tool_without_session(verb: Callable[..., Awaitable[Outcome]]) -> Tool:
    """Declare a tool that works without a session: the function takes its Params and the Caller."""

    def call(params: Any, session: Session, caller: Caller) -> Awaitable[Outcome]:
        return verb(params, caller)

    return replace(tool(verb), verb=call, needs_session=False, carries_news=False)


def _without_caller(verb: Callable[..., Awaitable[Outcome]]) -> Verb:
    def call(params: Any, session: Session, caller: Caller) -> Awaitable[Outcome]:
        return verb(params, session)

    return call


def _problem(item: Any, known: list[str]) -> JsonObject:
    argument = ".".join(str(part) for part in item["loc"]) or "arguments"
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        near = near_names(argument, known)
        message = "no such argument" + (f"; did you mean {' or '.join(near)}?" if near else f"; there are {known}")
    return {"argument": argument, "problem": message}
