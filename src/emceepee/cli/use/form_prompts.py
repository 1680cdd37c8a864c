"""Ask a server's questions at the terminal: forms field by field, URLs to open, and texts to complete."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from emceepee.cli.serve.process_setup import STDIN
from emceepee.cli.terminal import MOST_ASKED, TYPE_Y_OR_N, Paint, read_yes_or_no, rendered
from emceepee.terminal_text import printable
from emceepee.wire.json_types import JsonObject

READ_BYTES = 64 << 10
MOST_FIELDS = 100
_ACTIONS = {True: "accept", False: "decline", None: "cancel"}
ReadLine = Callable[[], Awaitable[str | None]]  # returns None at the end of input
Write = Callable[[str], object]


async def read_terminal_line() -> str | None:
    """Return the next line of the terminal without blocking the event loop.

    The thread is a daemon: nothing can interrupt it.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def settle(text: str | None) -> None:
        if not line.done():
            line.set_result(text)

    def read() -> None:
        try:
            data = os.read(STDIN, READ_BYTES)
        except OSError:
            data = b""
        with suppress(RuntimeError):  # the event loop is closed: no one waits any more
            loop.call_soon_threadsafe(settle, data.decode("utf-8", "replace").rstrip("\n") if data else None)

    threading.Thread(target=read, name="emceepee-stdin", daemon=True).start()
    return await line


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


class FormPrompts:
    """Asks on standard error, to reserve standard output for the result."""

    def __init__(self, read_line: ReadLine = read_terminal_line, write: Write = _write) -> None:
        self._read_line, self._write = read_line, write
        self._paint = Paint.of(sys.stderr)

    async def elicit(self, question: JsonObject) -> JsonObject:
        """Return the arguments of an answer: the action and, for a completed form, the content."""
        self._ask_heading(question)
        if question.get("mode") == "url":
            self._write(f"  {printable(str(question.get('url', '')))}\n")
            return {"action": _ACTIONS[await self._agrees("Did you open it and follow its instructions?")]}
        schema = question.get("requestedSchema")
        content = await self._fill_in(schema if isinstance(schema, dict) else {})
        if content is None:
            return {"action": "cancel"}
        action = _ACTIONS[await self._agrees("Send this?", default=True)]
        return {"action": action} | ({"content": content} if action == "accept" else {})

    async def complete(self, request: JsonObject) -> str | None:
        """Return the user's text in place of a model's completion, or None if the user refuses."""
        self._write(rendered("\n", self._paint.bold(str(request.get("server"))), " asks for words of a model:\n"))
        for message in request.get("messages") or ():
            content = message.get("content") if isinstance(message, dict) else None
            text = content.get("text") if isinstance(content, dict) else content
            self._write(f"  {printable(str(text))}\n")
        self._write("Your reply on one line, or nothing to decline: ")
        return (await self._read_line()) or None

    def problem(self, words: str) -> None:
        self._write(f"{self._paint.bad(words)}\n")

    def _ask_heading(self, question: JsonObject) -> None:
        server, message = self._paint.bold(str(question.get("server"))), str(question.get("message", ""))
        self._write(rendered("\n", server, f" asks: {message}\n"))

    async def _agrees(self, question: str, *, default: bool = False) -> bool | None:
        """Return the answer, or None if input ended or the user never typed yes or no."""
        for _ in range(MOST_ASKED):
            self._write(f"{question} [{'Y/n' if default else 'y/N'}] ")
            answer = await self._read_line()
            if answer is None:
                return None
            if (is_yes := read_yes_or_no(answer, default=default)) is not None:
                return is_yes
            self._write(f"{TYPE_Y_OR_N}\n")
        return None

    async def _fill_in(self, schema: JsonObject) -> JsonObject | None:
        """Return the form's content, or None if input ended."""
        properties = schema.get("properties")
        required = schema.get("required")
        needed = set(map(str, required)) if isinstance(required, list) else set()
        content: JsonObject = {}
        for name, rule in list((properties if isinstance(properties, dict) else {}).items())[:MOST_FIELDS]:
            rule = rule if isinstance(rule, dict) else {}
            while True:
                self._write(_label(name, rule, is_needed=name in needed))
                line = await self._read_line()
                if line is None:
                    return None
                if not line.strip() and (name not in needed or "default" in rule):
                    break  # emceepee fills in defaults
                try:
                    content[name] = _parsed(line, rule)
                except ValueError as error:
                    self.problem(f"  {error}")
                    continue
                if words := _mismatch(name, content[name], rule):
                    self.problem(f"  {words}")
                    continue
                break
        return content


def _label(name: str, rule: JsonObject, *, is_needed: bool) -> str:
    title = str(rule.get("title") or name)
    hints = [str(rule["description"])] if rule.get("description") else []
    if (choices := _choices(rule)) is not None:
        hints.append(" | ".join(words if words == str(value) else f"{value}: {words}" for value, words in choices[:50]))
    elif rule.get("type") == "boolean":
        hints.append("y or n")
    elif rule.get("type") in ("integer", "number"):
        hints += [f"{words} {rule[key]}" for key, words in (("minimum", "from"), ("maximum", "to")) if key in rule]
    if rule.get("type") == "array":
        hints.append("several with commas")
    if "default" in rule:
        default = {True: "y", False: "n"}.get(rule["default"]) if isinstance(rule["default"], bool) else rule["default"]
        hints.append(f"nothing means {default}")
    elif not is_needed:
        hints.append("may be left empty")
    more = f" ({'; '.join(hints)})" if hints else ""
    return printable(f"  {title}{more}: ".replace("\n", " "))


def _choices(rule: JsonObject) -> list[tuple[Any, str]] | None:
    """Return the allowed values with their labels, or None if any value is allowed."""
    if rule.get("type") == "array" and isinstance(rule.get("items"), dict):
        return _choices(rule["items"])
    if isinstance(listed := rule.get("enum"), list):
        names = rule.get("enumNames")
        shown = names if isinstance(names, list) and len(names) == len(listed) else listed
        return [(value, str(words)) for value, words in zip(listed, shown, strict=True)]
    for key in ("oneOf", "anyOf"):
        options = rule.get(key)
        if isinstance(options, list) and all(isinstance(option, dict) and "const" in option for option in options):
            return [(option["const"], str(option.get("title") or option["const"])) for option in options]
    return None


def _parsed(line: str, rule: JsonObject) -> Any:
    """Raises: ValueError."""
    text = line.strip()
    match rule.get("type"):
        case "boolean":
            if text.lower() not in ("y", "yes", "true", "n", "no", "false"):
                raise ValueError("say y or n")
            return text.lower() in ("y", "yes", "true")
        case "integer" | "number":
            try:
                value = json.loads(text)
            except ValueError:
                value = None
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError("say a number")
            return value
        case "array":
            items = rule.get("items")
            return [_parsed(each, items if isinstance(items, dict) else {}) for each in text.split(",") if each.strip()]
        case _:
            return line if _choices(rule) is None else _chosen(text, rule)


def _chosen(text: str, rule: JsonObject) -> Any:
    """Return the choice that matches the text by value or label, else the text itself."""
    for value, words in _choices(rule) or ():
        if text.lower() in (str(value).lower(), words.lower()):
            return value
    return text


def _mismatch(name: str, value: Any, rule: JsonObject) -> str | None:
    from emceepee.state.form import fill_in

    _, problems = fill_in({name: value}, {"properties": {name: rule}})
    return problems[0].message if problems else None
