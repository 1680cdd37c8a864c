"""Four sets of questions, each with its tools and the right answers. A set whose files are missing is skipped.

- mcpproxy: corpus_v2 and retrieval_golden_v1 of smart-mcp-proxy/mcpproxy-go (MIT)
- LiveMCPBench: tools and annotations of icip-cas/LiveMCPBench (Apache-2.0)
- BFCL: five files of the wheel bfcl-eval (Apache-2.0), which `make eval` installs
- MetaTool: plugin descriptions and queries of HowieHwong/MetaTool (MIT)
"""

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emceepee.wire.json_types import JsonObject

BFCL_FILES = ("simple_python", "multiple", "live_simple", "live_multiple", "parallel")
ToolId = tuple[str, str]  # the server and the name


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    right: frozenset[ToolId]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """Tools by server, and what is asked."""

    name: str
    servers: dict[str, list[JsonObject]]
    questions: list[Question]

    @property
    def tools(self) -> Iterator[tuple[str, JsonObject]]:
        return ((server, tool) for server, tools in self.servers.items() for tool in tools)


def load_sets(folder: Path, bfcl: Path) -> Iterator[QuestionSet]:
    loaders: list[Callable[[], QuestionSet]] = [
        lambda: _mcpproxy(folder),
        lambda: _livemcp(folder),
        lambda: _bfcl(bfcl),
        lambda: _metatool(folder),
    ]
    for load in loaders:
        try:
            yield load()
        except FileNotFoundError as error:
            print(f"left out: {error.filename} is missing")


def _mcpproxy(folder: Path) -> QuestionSet:
    servers: dict[str, list[JsonObject]] = {}
    for tool in _json(folder / "mcpproxy_corpus_v2.tools.json")["tools"]:
        entry = {"name": tool["tool"], "description": tool["description"], "inputSchema": tool["schema"]}
        servers.setdefault(tool["server"], []).append(entry)
    questions = [
        Question(text=query["query"], right=frozenset(_parted(label["tool_id"]) for label in query["labels"]))
        for query in _json(folder / "mcpproxy_retrieval_golden_v1.json")["queries"]
    ]
    return QuestionSet(name="mcpproxy golden", servers=servers, questions=questions)


def _livemcp(folder: Path) -> QuestionSet:
    """A task is a question; right is every tool that a person used for it."""
    servers: dict[str, list[JsonObject]] = {}
    for group in _json(folder / "livemcp_tools.json"):
        for server, listed in group["tools"].items():
            servers.setdefault(server, []).extend(listed["tools"])
    by_name: dict[str, set[ToolId]] = {}
    for server, tools in servers.items():
        for tool in tools:
            by_name.setdefault(tool["name"].strip().lower(), set()).add((server, tool["name"]))
    questions = []
    for task in _json(folder / "livemcp_annotations.json"):
        used = task["Annotator Metadata"]["Tools"].split("\n")
        names = [re.sub(r"^\s*\d+[.)]\s*", "", line).strip().lower() for line in used]
        if right := frozenset(tool for name in names for tool in by_name.get(name, ())):
            questions.append(Question(text=task["Question"], right=right))
    return QuestionSet(name="LiveMCPBench", servers=servers, questions=questions)


def _bfcl(folder: Path) -> QuestionSet:
    """The functions of all questions in one pool, each name once."""
    tools: dict[str, JsonObject] = {}
    questions = []
    for name in BFCL_FILES:
        right_calls = _lines(folder / f"possible_answer/BFCL_v4_{name}.json")
        answers = {entry["id"]: entry["ground_truth"] for entry in right_calls}
        for entry in _lines(folder / f"BFCL_v4_{name}.json"):
            for function in entry["function"]:
                tool = {"name": function["name"], "description": function["description"]}
                tools.setdefault(function["name"], tool | {"inputSchema": function["parameters"]})
            said = [message["content"] for turn in entry["question"] for message in turn if message["role"] == "user"]
            right = frozenset(("", called) for call in answers[entry["id"]] for called in call)
            questions.append(Question(text=" ".join(said), right=right))
    return QuestionSet(name="BFCL, pooled", servers={"": list(tools.values())}, questions=questions)


def _metatool(folder: Path) -> QuestionSet:
    described = _json(folder / "metatool_plugin_des.json")
    tools = [{"name": name, "description": text} for name, text in described.items()]
    with (folder / "metatool_queries.csv").open(encoding="utf-8", newline="") as file:
        questions = [Question(text=row["Query"], right=frozenset({("", row["Tool"])})) for row in csv.DictReader(file)]
    return QuestionSet(name="MetaTool", servers={"": tools}, questions=questions)


def _parted(tool_id: str) -> ToolId:
    server, _, name = tool_id.partition(":")
    return server, name


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _lines(path: Path) -> Iterator[JsonObject]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)
