"""Searchable documents: one per tool, resource, template, prompt, and server, cut to the size that an index needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from emceepee.wire.json_types import JsonObject

LONGEST_NAME = 1000  # characters of a name or an address; entries with longer ones are not indexed
LONGEST_TITLE = 300  # indexed characters of a title or an argument's name
LONGEST_TEXT = 4000  # of a description, or of all arguments' texts; longer text is usually padding
MOST_ARGUMENTS = 200
DEEPEST = 3  # levels of objects in objects


class EntryType(StrEnum):
    """The type of an entry."""

    TOOL = "tool"
    RESOURCE = "resource"
    TEMPLATE = "resourceTemplate"
    PROMPT = "prompt"
    SERVER = "server"


class Fields(NamedTuple):
    """The texts of a document, ordered by the weight of their words; the columns of the index."""

    name: str
    title: str
    description: str
    arguments: str  # their names
    argument_texts: str
    server: str


@dataclass(frozen=True, slots=True)
class Document:
    """An entry as its server sent it."""

    type: EntryType
    server: str
    entry: JsonObject

    @property
    def name(self) -> str:
        """The name that callers use: the address of a resource. Empty if the entry has no usable name."""
        name = _text(self.entry.get(_NAMED_BY.get(self.type, "name")), LONGEST_NAME + 1)
        return "" if len(name) > LONGEST_NAME else name

    @property
    def description(self) -> str:
        return _text(self.entry.get("description"), LONGEST_TEXT) or self.title

    @property
    def title(self) -> str:
        annotations = self.entry.get("annotations")
        hinted = annotations.get("title") if isinstance(annotations, dict) else None
        return _text(self.entry.get("title") or hinted, LONGEST_TITLE)

    def fields(self) -> Fields:
        names, texts = self._arguments()
        title = self.title
        if self.type in _NAMED_BY:
            title = f"{_text(self.entry.get('name'), LONGEST_TITLE)} {title}"
        return Fields(
            name=self.name,
            title=title,
            description=_text(self.entry.get("description"), LONGEST_TEXT),
            arguments=names,
            argument_texts=texts,
            server="" if self.type is EntryType.SERVER else self.server[:LONGEST_TITLE],
        )

    def _arguments(self) -> tuple[str, str]:
        if self.type is EntryType.TOOL:
            found = list(_take(_properties(self.entry.get("inputSchema"))))
        elif self.type is EntryType.PROMPT:
            found = list(_take(_prompt_arguments(self.entry)))
        else:
            return "", ""
        names = " ".join(name for name, _ in found)
        texts = " ".join(text for _, described in found for text in _texts(described))
        return names[:LONGEST_TEXT], texts[:LONGEST_TEXT]


_NAMED_BY = {EntryType.RESOURCE: "uri", EntryType.TEMPLATE: "uriTemplate"}
_Argument = tuple[str, JsonObject]


def _properties(schema: Any, depth: int = 0) -> Iterator[_Argument]:
    """Yield the properties of the schema and of its nested objects."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth >= DEEPEST:
        return
    for name, described in properties.items():
        described = described if isinstance(described, dict) else {}
        yield name[:LONGEST_TITLE], described
        yield from _properties(described, depth + 1)
        yield from _properties(described.get("items"), depth + 1)


def _prompt_arguments(entry: JsonObject) -> Iterator[_Argument]:
    arguments = entry.get("arguments")
    for argument in arguments if isinstance(arguments, list) else ():
        if isinstance(argument, dict):
            yield _text(argument.get("name"), LONGEST_TITLE), argument


def _take(arguments: Iterator[_Argument]) -> Iterator[_Argument]:
    for _, argument in zip(range(MOST_ARGUMENTS), arguments, strict=False):
        yield argument


def _texts(described: JsonObject) -> Iterator[str]:
    yield _text(described.get("description"), LONGEST_TEXT)
    values = described.get("enum")
    for value in values[:MOST_ARGUMENTS] if isinstance(values, list) else ():
        yield _text(value, LONGEST_TITLE)


def _text(value: Any, most: int) -> str:
    return value[:most] if isinstance(value, str) else ""
