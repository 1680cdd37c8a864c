"""The answer of a script to a question is passed on and appears in no log, reply, span, page, or file."""

import asyncio
import json
from pathlib import Path
from typing import Any

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller
from support.callers.restartable_process import restartable_process
from support.console.feed_reader import an_open_feed
from support.console.http_browser import Browser
from support.sessions.asking import task_id
from support.waiting import eventually

FORM = {
    "method": "elicitation/create",
    "params": {
        "message": "The PIN?",
        "requestedSchema": {"type": "object", "properties": {"pin": {"type": "string"}}, "required": ["pin"]},
    },
}
RESPOND = '"respond_to_elicitation"'
# QUESTION and CANARY stand for what is different each time.
ANSWER = '{"request_id": "QUESTION", "action": "accept", "content": {"pin": "CANARY"}}'
ANSWERING = f"await mcp.tool({RESPOND}, X)"
MISFIT, MISSPELT = ANSWER.replace('"pin"', '"pim"'), ANSWER.replace('"content"', '"contents"')
OWN = f'{{"server": "emceepee", "tool": {RESPOND}, "args": {ANSWER}}}'
SCRIPTS = {
    "a tool of emceepee": f"await mcp.tool({RESPOND}, {ANSWER})",
    "a tool of a server": f'await mcp.call_tool("emceepee", {RESPOND}, {ANSWER})',
    "a tool in a tool": f'await mcp.tool("execute_tool", {OWN})',
    "another name of an argument": f"await mcp.tool({RESPOND}, {ANSWER.replace('request_id', 'requestId')})",
    "side by side": f"await asyncio.gather(mcp.tool({RESPOND}, {ANSWER}), mcp.list_servers())",
    "variables": f'pin = "CANARY"\nanswer = {{"pin": pin}}\n'
    f'await mcp.tool({RESPOND}, {{"request_id": "QUESTION", "action": "accept", "content": answer}})\nlen(pin)',
    "another call": f'await mcp.call_tool("one", "echo", {{"id": "CANARY"}})\nawait mcp.tool({RESPOND}, {ANSWER})\n1',
    "a script that waits": f"await mcp.tool({RESPOND}, {ANSWER})\nawait mcp.sleep(2)\n'done'",
}
# The question stays open.
FAILURES = {
    "a mistake in the script": f'await mcp.tool({RESPOND}, "CANARY")',
    "an exception": f'print(len("CANARY"))\nmcp.tool({RESPOND})\n1 / 0',
    "an answer that does not fit": f"await mcp.tool({RESPOND}, {MISFIT})",
    "an unknown argument": f"await mcp.tool({RESPOND}, {MISSPELT})",
    "a server that is none": f'await mcp.call_tool("emcepee", {RESPOND}, {ANSWER})',
}


async def ask(caller: HttpCaller) -> tuple[str, str]:
    """The question that a call asks, and the task that the call became."""
    promotion = await caller.call("execute_tool", server="one", tool="ask")
    (question,) = promotion["structuredContent"]["pending_on_server"]["elicitations_for_server"]
    return question["requestId"], task_id(promotion)


def files_below(folder: Path) -> dict[str, str]:
    return {file.name: file.read_bytes().decode("latin-1") for file in folder.rglob("*") if file.is_file()}


async def test_an_answer_in_a_script_appears_in_no_log_reply_span_page_or_file(tmp_path: Path) -> None:
    backend, audit = CountingBackend(), tmp_path / "audit.jsonl"
    backend.question = FORM
    await backend.start()
    arguments = ("--log-level", "debug", "--audit-log", str(audit), "--audit-arguments")
    replies: list[Any] = []
    seen: dict[str, str] = {}
    async with restartable_process(tmp_path / "state", *arguments) as endpoint:
        person = Browser(endpoint.http, endpoint.origin)
        await person.come_in(endpoint.log)
        caller = await endpoint.caller()
        await caller.value("add_server", name="one", url=backend.url)
        async with an_open_feed(endpoint.http, person) as feed:
            canaries: list[str] = []

            async def run(what: str, script: str, question: str, **given: Any) -> dict[str, Any]:
                canaries.append(canary := f"canary-{len(canaries)}-{what.replace(' ', '-')}")
                code = script.replace("QUESTION", question).replace("CANARY", canary)
                reply = await caller.call("codemode_execute", code=code, **given)
                replies.append(reply)
                return reply

            for what, script in SCRIPTS.items():
                question, asking = await ask(caller)
                waits = {"timeout": 1.5} if "waits" in what else {}
                reply = await run(what, script, question, **waits)
                replies.append(answered := await caller.call("get_task_result", task_id=asking))
                assert answered["content"][0]["text"] == "accept", (what, reply)
                if waits:
                    seen |= {f"{name} while it waits": text for name, text in files_below(tmp_path).items()}
                    replies.append(await caller.call("get_task", task_id=task_id(reply)))
                    assert replies[-1]["structuredContent"]["task"]["toolArgs"] == {"code": "***"}
                    value = await caller.value("codemode_execute", task_id=task_id(reply))
                    assert value["result"] == "done"
            question, _ = await ask(caller)
            for what, script in FAILURES.items():
                reply = await run(what, script, question)
                assert reply["structuredContent"]["success"] is False, (what, reply)
            answer = {"request_id": question, "action": "accept", "content": {"pin": "canary-of-a-call"}}
            canaries.append("canary-of-a-call")
            mistaken = (
                {"server": "emcepee", "tool": "respond_to_elicitation", "args": answer},
                {"server": "one", "tool": "respond_to_elicitation", "args": answer},
                {
                    "server": "emceepee",
                    "tool": "codemode_execute",
                    "args": {"script": ANSWERING.replace("X", json.dumps(answer))},
                },
                {"name": "emceepee", "tool": "respond_to_elicitation", "arguments": json.dumps(answer)},
            )
            replies += [await caller.call("execute_tool", **given) for given in mistaken]
            count = len(SCRIPTS) + len(FAILURES)

            def is_told() -> bool:
                rows = [row for row in feed.rows.values() if row["name"] == "codemode_execute"]
                return len(rows) > count and all(row["status"] != "pending" for row in rows)

            await eventually(is_told, what="all scripts are on the page")
            seen["console"] = json.dumps([feed.sessions, feed.rows, feed.logs])
            details = [
                (await person.fetch("GET", f"/console/request?session={row['session']}&id={key}")).text
                for key, row in feed.rows.items()
            ]
        seen["details"] = "".join(details)
        await endpoint.restart("kill")
        await asyncio.wait_for(endpoint.stop(), 30)
        seen["log"] = "".join(endpoint.log)
    await backend.stop()
    seen |= files_below(tmp_path) | {"replies": json.dumps(replies)}
    assert "respond_to_elicitation" in seen["details"]
    assert '"arguments":{"code":"***"}' in seen["audit.jsonl"]
    assert {(place, canary) for place, text in seen.items() for canary in canaries if canary in text} == set()
