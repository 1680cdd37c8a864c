"""`emceepee call`: call a server's tool from the command line, and answer its questions."""

import argparse
import re
import sys

from emceepee.cli.client_changes import say_json
from emceepee.cli.terminal import DONE, FAILED, complain, say
from emceepee.cli.use.call_arguments import read_arguments
from emceepee.cli.use.command_session import run_with_tools
from emceepee.cli.use.form_prompts import FormPrompts
from emceepee.cli.use.progress_bar import ProgressBar
from emceepee.cli.use.result_text import result_text
from emceepee.cli.use.tool_caller import CallFailed, ToolCaller, error_report, error_words
from emceepee.wire.json_types import JsonObject

LOOK_MS = 1000  # polling interval for a call that became a task
BY_A_PERSON = "human"  # the model name in a completion that a person wrote


def run_call(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_with_tools(options, lambda caller: _call(options, caller))


async def _call(options: argparse.Namespace, caller: ToolCaller) -> int:
    schema = await _schema(caller, options.server, options.tool)
    arguments = read_arguments(options.arguments, options.args, schema)
    with ProgressBar(f"{options.server}.{options.tool}", is_on=not options.json) as bar:
        request = {"server": options.server, "tool": options.tool, "args": arguments}
        result = await CommandCall(caller, bar).call("execute_tool", request, options.timeout)
    if options.json:
        say_json(result)
    elif result.get("isError"):
        complain(error_report(result))
    else:
        say(result_text(result))
    return FAILED if result.get("isError") else DONE


async def _schema(caller: ToolCaller, server: str, tool: str) -> JsonObject:
    """Return the tool's schema, or an empty one if it is not listed: an unlisted tool may still exist."""
    wanted = {"server": f"^{re.escape(server)}$", "tool": f"^{re.escape(tool)}$", "detail": "full"}
    listed = await caller.value("list_tools", wanted)
    schemas = [entry.get("inputSchema") for entry in listed.get("tools") or ()]
    return schemas[0] if schemas and isinstance(schemas[0], dict) else {}


class CommandCall:
    """A call of any duration, including the server's questions during the call."""

    def __init__(self, caller: ToolCaller, bar: ProgressBar, prompts: FormPrompts | None = None) -> None:
        self._caller, self._bar = caller, bar
        if prompts is None and sys.stdin.isatty() and sys.stderr.isatty():
            prompts = FormPrompts()
        self._prompts = prompts

    async def call(self, tool: str, arguments: JsonObject, seconds: float) -> JsonObject:
        """Return the result. Raises: CallFailed."""
        asked: JsonObject = {"timeout_ms": round(seconds * 1000)}
        if tool == "execute_tool":
            asked["task_ttl_ms"] = asked["timeout_ms"]
        reply = await self._caller.call(tool, arguments | asked, self._bar.show)
        structured = reply.get("structuredContent")
        task = structured.get("proxy_task") if isinstance(structured, dict) else None
        if reply.get("isError") or not isinstance(task, dict) or "task_id" not in task:
            return reply
        return await self._follow(str(task["task_id"]), str(task.get("server")), seconds)

    async def _follow(self, task_id: str, server: str, seconds: float) -> JsonObject:
        """Wait for a call that became a task, because its server asks a question or because it takes long."""
        has_asked = False
        while True:
            task = (await self._caller.value("get_task", {"task_id": task_id}))["task"]
            if task.get("status") != "working":
                return await self._caller.call("get_task_result", {"task_id": task_id})
            if isinstance(progress := task.get("progress"), dict):
                self._bar.show(progress)
            if await self._answer_all(server):
                has_asked = True
            elif not has_asked:
                await self._caller.value("cancel_task", {"task_id": task_id})
                raise CallFailed(f"it took longer than {seconds:g} s and was cancelled; pass a longer --timeout")
            else:
                await self._caller.value("await_activity", {"timeout_ms": LOOK_MS})

    async def _answer_all(self, server: str) -> bool:
        """Answer all pending questions, and return whether there were any."""
        forms = (await self._caller.value("get_elicitations", {"server": server})).get("requests") or []
        wishes = (await self._caller.value("get_sampling_requests", {"server": server})).get("requests") or []
        if forms or wishes:
            self._bar.hide()
        for question in forms:
            await self._answer(question)
        for wish in wishes:
            await self._complete(wish)
        return bool(forms or wishes)

    async def _answer(self, question: JsonObject) -> None:
        request = {"request_id": question.get("requestId")}
        if self._prompts is None:
            complain(
                f"{question.get('server')} asks: {question.get('message', '')} It gets no answer, because there is "
                f"no terminal; run this command in one"
            )
            await self._caller.call("respond_to_elicitation", request | {"action": "cancel"})
            return
        while True:
            answer = await self._prompts.elicit(question)
            reply = await self._caller.call("respond_to_elicitation", request | answer)
            if not reply.get("isError"):
                return
            self._prompts.problem(error_words(reply))
            if answer["action"] != "accept":
                return

    async def _complete(self, wish: JsonObject) -> None:
        request = {"request_id": wish.get("requestId")}
        text = None if self._prompts is None else await self._prompts.complete(wish)
        if text is None:
            if self._prompts is None:
                complain(f"{wish.get('server')} requests a model's completion, and no model is available")
            await self._caller.call("cancel_sampling_request", request | {"reason": "no user can answer"})
            return
        answer = {"role": "assistant", "content": text, "model": BY_A_PERSON, "stop_reason": "endTurn"}
        await self._caller.call("respond_to_sampling", request | answer)
