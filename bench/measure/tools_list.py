"""The cost of `tools/list` for a model: its bytes and tokens. emceepee's is the same for any backends."""

import json
import subprocess

from bench.contestants import DIRECT, EMCEEPEE, backend, started
from bench.processes import ROOT
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era, Json, Shape, Wire
from emceepee.surface import Surface, order_of_listing
from emceepee.tools.catalogue import TOOLS

PART = "tools-list"
COUNTER = ROOT / ".tools" / "tokens" / "bin" / "python"
COUNT_SECONDS = 60.0


def measure(settings: Settings, results: Results) -> None:
    shape, era = Shape(Wire.HTTP, Wire.HTTP), Era.HANDSHAKE
    for contestant in (DIRECT, EMCEEPEE):
        if settings.has(contestant):
            progress(f"tools/list of {contestant.name}")
            with backend(shape.back, era) as back, started(contestant, shape, era, back) as driver:
                driver.open()
                text = json.dumps(_shown_to_a_model(driver.list_tools()), separators=(",", ":"), ensure_ascii=False)
            results.add(PART, "size", len(text.encode()), "B", contestant.name)
            if COUNTER.exists():
                results.add(PART, "o200k tokens", _tokens(text), "tokens", contestant.name)
    if settings.has(EMCEEPEE):
        for surface in Surface:
            text = json.dumps(_of_surface(surface), separators=(",", ":"), ensure_ascii=False)
            results.add(PART, f"surface {surface}: size", len(text.encode()), "B")
            if COUNTER.exists():
                results.add(PART, f"surface {surface}: o200k tokens", _tokens(text), "tokens")


def _of_surface(surface: Surface) -> list[Json]:
    """Return the tools that a handshake caller sees on that surface."""
    tools = {tool.name: tool for tool in TOOLS}
    names = order_of_listing(surface, tools)
    shown = [(name, *tools[name].listing(surface)) for name in names]
    return [{"name": name, "description": words, "inputSchema": schema} for name, words, schema in shown]


def _shown_to_a_model(listed: Json) -> list[Json]:
    return [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in listed["tools"]]


def _tokens(text: str) -> int:
    script = ROOT / "bench" / "peers" / "count_tokens.py"
    done = subprocess.run(
        (str(COUNTER), str(script)), input=text, capture_output=True, text=True, check=True, timeout=COUNT_SECONDS
    )
    return int(done.stdout)
