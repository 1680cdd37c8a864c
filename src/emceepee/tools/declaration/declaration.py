"""The declaration of a tool: a parameter model, a docstring, and one function. All else is derived from these."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.codemode.private_scripts import ANSWERING_TOOLS
from emceepee.errors import InvalidArguments, Problem, cut_name
from emceepee.sessions.session import Session
from emceepee.surface import Surface
from emceepee.telemetry.journal import Journal
from emceepee.telemetry.redaction import LOOKED_AT, MASK, public_place
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.tools.declaration.aliases import Aliases
from emceepee.tools.declaration.hints import Load, ToolEffect
from emceepee.tools.declaration.parameter_schema import compact_schema
from emceepee.tools.request_context import RequestContext
from emceepee.validation import Path, mismatches
from emceepee.wire.json_types import JsonObject


class Params(BaseModel):
    """A tool's parameters. An unknown argument is rejected by name, so that a misspelled one is never ignored."""

    model_config = ConfigDict(extra="forbid")


MOST_ARGUMENTS = 100  # far more than any tool has
MOST_ENTRIES = 10_000  # in the lists and objects of one argument, far more than any argument needs
# Tools that send one request to a backend: the kind of its span, and the arguments with its name and its parameters.
BACKEND_REQUESTS = {
    "execute_tool": (SpanKind.TOOL_CALL, "tool", "args"),
    "read_resource": (SpanKind.RESOURCE_READ, "uri", None),
    "get_prompt": (SpanKind.PROMPT_GET, "name", "arguments"),
}
ServerName = Annotated[str, Field(description="Server name")]
AnyServer = Annotated[str | None, Field(description="Default: all")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """The facts that a result already states, so that its notices need not repeat them."""

    ended_task: str | None = None
    created_task: str | None = None
    server: str | None = None  # the server whose status and capabilities the result contains
    questions: frozenset[str] = frozenset()  # ids of the questions whose text the result contains


NO_MENTIONS = Mentions()


@dataclass(frozen=True, slots=True)
class BackendResult:
    """A backend's own result, passed on unchanged."""

    result: JsonObject
    mentions: Mentions = NO_MENTIONS


@dataclass(frozen=True, slots=True)
class InputRequired:
    """A result with questions for a caller of 2026-07-28, which repeats the call with the answers."""

    result: JsonObject


V = TypeVar("V", bound=Mapping[str, Any], covariant=True)


@dataclass(frozen=True, slots=True)
class OwnResult(Generic[V]):
    """A result of emceepee whose content differs from its value as JSON."""

    content: list[JsonObject]
    value: V
    mentions: Mentions = NO_MENTIONS
    is_error: bool = False


Outcome = Mapping[str, Any] | BackendResult | InputRequired | OwnResult[Mapping[str, Any]]
DeclaredFunction = Callable[..., Awaitable[Outcome]]  # a tool's function, as its module defines it
ToolFunction = Callable[[Any, Session, RequestContext], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Brief:
    """The shorter description of a tool on a surface that lists few tools. The tool still accepts all its arguments."""

    description: str
    arguments: tuple[str, ...] | None = None  # the listed ones; None: all
    words: Mapping[str, str] = field(default_factory=dict)  # replace the descriptions of arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the catalogue."""

    name: str
    title: str
    description: str
    params: type[BaseModel]
    input_schema: JsonObject
    run: ToolFunction
    result: Any = None  # the type of its result, from which the reference is generated
    effect: ToolEffect = ToolEffect()
    load: Load = Load()
    brief: Brief | None = None
    unlisted: frozenset[str] = frozenset()  # accepted arguments that only the reference describes
    needs_session: bool = True
    private: frozenset[str] = frozenset()  # arguments that no record shows: fields with repr=False
    free: frozenset[str] = frozenset()  # arguments that are, or contain, objects of any content
    is_private: Callable[[JsonObject], bool] | None = None  # whether to mask a call with these arguments
    carries_notices: bool = True  # whether the reply gets notices; False for the tool that returns them
    is_durable: bool = False  # whether its reply promises that a change outlives the process
    aliases: Aliases = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "aliases", Aliases.of(self.input_schema))

    def listing(self, surface: Surface) -> tuple[str, JsonObject]:
        """Return the description and the input schema, as the surface lists them."""
        brief, schema = self.brief, self._listed_schema()
        if surface is Surface.FULL or brief is None:
            return self.description, schema
        shown = {
            name: schema["properties"][name] | ({"description": brief.words[name]} if name in brief.words else {})
            for name in (brief.arguments if brief.arguments is not None else schema.get("properties", {}))
        }
        return brief.description, schema | {"properties": shown}

    def _listed_schema(self) -> JsonObject:
        if not self.unlisted:
            return self.input_schema
        shown = {name: item for name, item in self.input_schema["properties"].items() if name not in self.unlisted}
        return self.input_schema | {"properties": shown}

    def check(self, arguments: JsonObject) -> BaseModel:
        """Validate the arguments. Raises: InvalidArguments, which names the wrong ones."""
        if len(arguments) > MOST_ARGUMENTS:
            raise InvalidArguments(f"{self.name} cannot be called like this: it has {len(arguments)} arguments.")
        for name, value in arguments.items():
            if (type(value) is dict and name not in self.free) or type(value) is list:
                self._check_entries(name, value)
        try:
            return self.params.model_validate(arguments)
        except ValidationError as error:
            raise self._refusal(error) from None

    def _check_entries(self, name: str, value: Any) -> None:
        """Bound the number of errors in a validation, because each takes a kilobyte and several microseconds.

        Raises: InvalidArguments if the validation could report more than `MOST_ENTRIES` wrong entries.
        """
        containers = (list,) if name in self.free else (list, dict)  # the validation skips the content of free objects
        budget, waiting = Budget(max_bytes=0, max_nodes=MOST_ENTRIES), [value]
        try:
            for container in waiting:
                budget.spend(nodes=len(container))
                inner = container.values() if isinstance(container, dict) else container
                waiting += [item for item in inner if isinstance(item, containers)]
        except OverBudget:
            words = f"may have at most {MOST_ENTRIES} entries"
            raise self._refused([Problem(cut_name(name), "maxItems", words)]) from None

    def _refusal(self, error: ValidationError) -> InvalidArguments:
        return self._refused(
            Problem(cut_name(".".join(map(str, path))) or None, code, self._both_given(path) or words)
            for path, code, words in mismatches(error, self.params, private=self.private)
        )

    def _refused(self, found: Iterable[Problem]) -> InvalidArguments:
        # The last two keys are former names of `field` and `message`, which programs may still read.
        entries = [
            {**problem._asdict(), "argument": problem.field or "arguments", "problem": problem.message}
            for problem in found
        ]
        words = "; ".join(f"{entry['argument']}: {entry['problem']}" for entry in entries)
        end = "" if words.endswith("?") else "."
        return InvalidArguments(f"{self.name} cannot be called like this: {words}{end}", details={"problems": entries})

    def _both_given(self, path: Path) -> str | None:
        """Explain that an alias was rejected because its argument is given as well; None for any other name."""
        meant = self.aliases.others.get(str(path[0])) if len(path) == 1 else None
        return meant and f"stands for {meant}, which is given as well and differs; pass one of them"

    def begin_span(
        self,
        journal: Journal,
        session: Session | None,
        arguments: JsonObject,
        parent: Span | None = None,
        origin: RequestContext | None = None,
    ) -> Span:
        """Begin the span of a call in a journal. `parent` is the span of the request that contains the call."""
        is_private = parent is not None and parent.is_private
        server = arguments.get("server")
        if self.name in BACKEND_REQUESTS:
            kind, about, inner = BACKEND_REQUESTS[self.name]
            server = server if isinstance(server, str) else None
            shown = arguments.get(inner) if inner else {}
            given = shown if isinstance(shown, dict) else {}
            name = arguments.get(about)
            name = name if isinstance(name, str) else ""
            is_private = is_private or name in ANSWERING_TOOLS  # with a wrong server: its arguments contain an answer
        else:
            kind, name, given = SpanKind.OWN_TOOL, self.name, arguments
            # The argument may also be a pattern.
            server = server if isinstance(server, str) and session is not None and session.has_server(server) else None
            is_private = is_private or (self.is_private is not None and self.is_private(arguments))
            if self.private:  # mask unknown arguments as well: the value of a misspelled one may be private
                public = self.aliases.own - self.private
                given = {key: value if key in public else MASK for key, value in given.items()}
            if isinstance(url := given.get("url"), str):  # the address of a server: only add_server has this argument
                given = given | {"url": public_place(url) if len(url) <= LOOKED_AT else MASK}
        if not is_private:
            return journal.begin(kind, name, server, given, parent, origin)
        span = journal.begin(kind, name, server, dict.fromkeys(given, MASK), parent, origin)
        span.is_private = True
        return span


def tool(
    *,
    title: str,
    effect: ToolEffect,
    load: Load,
    brief: Brief | None = None,
    unlisted: Iterable[str] = (),
    needs_session: bool = True,
    carries_notices: bool = True,
    is_durable: bool = False,
    is_private: Callable[[JsonObject], bool] | None = None,
) -> Callable[[DeclaredFunction], Tool]:
    """Declare a tool. Its function receives its Params, the Session (if it needs one), and optionally the
    RequestContext.

    `is_private` decides by the arguments whether records mask the whole call.
    `carries_notices` is False for a tool whose own result consists of notices. It has no effect without a session.
    `is_durable` is True for a tool whose effect outlives the process.
    """

    def declare(written: DeclaredFunction) -> Tool:
        hints = get_type_hints(written, include_extras=True)
        parameters = list(inspect.signature(written).parameters)
        params = hints[parameters[0]]
        return Tool(
            name=written.__name__,
            title=title,
            description=" ".join(inspect.cleandoc(written.__doc__ or "").split()),
            params=params,
            input_schema=compact_schema(params),
            run=_with_all_parameters(written, [hints[name] for name in parameters[1:]]),
            result=hints["return"],
            effect=effect,
            load=load,
            brief=brief,
            unlisted=frozenset(unlisted),
            needs_session=needs_session,
            private=frozenset(name for name, field in params.model_fields.items() if not field.repr),
            free=frozenset(name for name, field in params.model_fields.items() if _has_free_objects(field.annotation)),
            carries_notices=carries_notices and needs_session,
            is_durable=is_durable,
            is_private=is_private,
        )

    return declare


def _has_free_objects(annotation: Any) -> bool:
    return annotation == dict[str, Any] or any(map(_has_free_objects, get_args(annotation)))


def _with_all_parameters(written: DeclaredFunction, wants: list[type]) -> ToolFunction:
    """Wrap the function so that it accepts all three arguments."""
    if wants == [Session, RequestContext]:
        return written
    if wants == [Session]:
        return lambda params, session, caller: written(params, session)
    return lambda params, session, caller: written(params, caller)
