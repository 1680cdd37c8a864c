"""How a tool is declared: a parameter model, a docstring, one function. Everything else is derived from these."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emceepee.backends.spec import BackendSpec, ServerEntry
from emceepee.errors import InvalidArguments, cut_name
from emceepee.json_types import JsonObject
from emceepee.sessions.call import Call
from emceepee.sessions.session import Session
from emceepee.state.events import Taken
from emceepee.tools.aliases import Aliases
from emceepee.tools.hints import Effect, Load
from emceepee.tools.schema import compact_schema
from emceepee.validation import Path, problems


class Params(BaseModel):
    """A tool's parameters. Strangers are refused by name, so that a misspelt argument is never ignored."""

    model_config = ConfigDict(extra="forbid")


class NoParams(Params):
    """For tools that take nothing."""


MOST_ARGUMENTS = 100  # far more than any tool has
ServerName = Annotated[str, Field(description="Server name")]
AnyServer = Annotated[str | None, Field(description="Default: all")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a result tells by itself, so that the notices behind it need not."""

    ended_task: str | None = None
    created_task: str | None = None
    server: str | None = None  # whose capabilities stand in it
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


class SessionHandles(Protocol):
    """Where sessions that a caller names are opened, found and closed."""

    idle_ms: int  # how long an unused one is kept

    async def open(self) -> str: ...
    async def close(self, session: str) -> None: ...
    def find(self, handle: str) -> Session: ...


OnEvents = Callable[[Session, Taken], None]


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
    on_events: OnEvents | None = None  # told which events the reply carries; they come again if nobody reads it
    is_gone: Callable[[], bool] = _never  # whether nobody would read a reply
    session_handles: SessionHandles | None = None
    is_remote: bool = False  # from another machine, or as good as
    may_add: Callable[[ServerEntry], Awaitable[BackendSpec]] | None = None  # raises NotAllowed


Outcome = JsonObject | BackendResult | OwnResult
Written = Callable[..., Awaitable[Outcome]]  # a tool's function, as its module has it
Verb = Callable[[Any, Session, Caller], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the catalogue."""

    name: str
    title: str
    description: str
    params: type[BaseModel]
    input_schema: JsonObject
    verb: Verb
    effect: Effect = Effect()
    load: Load = Load()
    needs_session: bool = True
    private: frozenset[str] = frozenset()  # arguments that are shown to nobody: fields with repr=False
    carries_news: bool = True  # whether the reply gets the notices; false for the tool that is made of them
    aliases: Aliases = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "aliases", Aliases.of(self.input_schema))

    def check(self, arguments: JsonObject) -> BaseModel:
        """Arguments under their own names. Raises: InvalidArguments, naming those that do not fit."""
        if len(arguments) > MOST_ARGUMENTS:
            raise InvalidArguments(f"{self.name} cannot be called like this: it has {len(arguments)} arguments.")
        try:
            return self.params.model_validate(arguments)
        except ValidationError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: ValidationError) -> InvalidArguments:
        found = [
            {"argument": cut_name(".".join(map(str, path))) or "arguments", "problem": self._both_given(path) or words}
            for path, words in problems(error, self.params, private=self.private)
        ]
        words = "; ".join(f"{item['argument']}: {item['problem']}" for item in found)
        end = "" if words.endswith("?") else "."
        return InvalidArguments(f"{self.name} cannot be called like this: {words}{end}", details={"problems": found})

    def _both_given(self, path: Path) -> str | None:
        """Of a name that was not taken for the argument it stands for: because that one is given too."""
        meant = self.aliases.others.get(str(path[0])) if len(path) == 1 else None
        return meant and f"stands for {meant}, which is given too and differs; give one of them"


def tool(
    *, title: str, effect: Effect, load: Load, needs_session: bool = True, carries_news: bool = True
) -> Callable[[Written], Tool]:
    """Declare a tool. The function takes its Params, the Session (unless it needs none) and, if it wants, the Caller.

    `carries_news` is false for a tool whose own result is the news, and of no meaning without a session.
    """

    def declare(written: Written) -> Tool:
        hints = get_type_hints(written)
        parameters = list(inspect.signature(written).parameters)
        params = hints[parameters[0]]
        return Tool(
            name=written.__name__,
            title=title,
            description=" ".join(inspect.cleandoc(written.__doc__ or "").split()),
            params=params,
            input_schema=compact_schema(params),
            verb=_verb(written, [hints[name] for name in parameters[1:]]),
            effect=effect,
            load=load,
            needs_session=needs_session,
            private=frozenset(name for name, field in params.model_fields.items() if not field.repr),
            carries_news=carries_news and needs_session,
        )

    return declare


def _verb(written: Written, wants: list[type]) -> Verb:
    """The function with the same parameters as every other."""
    if wants == [Session, Caller]:
        return written
    if wants == [Session]:
        return lambda params, session, caller: written(params, session)
    return lambda params, session, caller: written(params, caller)
