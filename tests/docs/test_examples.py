"""The examples are programs that run."""

import asyncio
import os
import sys
from pathlib import Path

from support.documentation import ROOT

BOUND = 100.0
PROCESSES = Path("/proc")
SAID = (
    *("2 + 40 = 42", "100% layer 4 of 4", "Did you mean add?", "Buy bread.", "georgian", '"servers": []'),
    *(
        "The call continues as task",
        "19 + 4 = 23",
        "Dug through 3 layers in 1 s",
    ),
    *("demo waits for an answer", "Booked at Chez Demo: 4 guests at 19:30 by the window."),
    *("asks for a completion:", "Nobody waits long. — a poet"),
    *("! timer_expired (emceepee)", '"message": "Tea is ready."}', "! task_completed (demo)"),
)


async def run(example: str, **environment: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, f"examples/{example}"),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), BOUND)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, out.decode(), err.decode()


def processes_with(variable: str) -> list[str]:
    """The commands of running processes whose environment has it; none where there is no /proc to look into."""
    found = []
    for process in PROCESSES.glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended in between, or belongs to another user
            continue
    return found


async def test_the_example_conversation_runs_to_its_end_and_leaves_no_process() -> None:
    mark = f"conversation-{os.getpid()}"  # LOGNAME is one of the few variables that every child inherits
    code, out, err = await run("conversation.py", LOGNAME=mark)
    assert (code, err) == (0, "")
    assert [words for words in SAID if words not in " ".join(out.split())] == []
    assert "\x1b" not in out
    assert processes_with(f"LOGNAME={mark}") == []
