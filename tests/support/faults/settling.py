"""When the faults are over: everything that was promised comes, every session works, and the ledgers are checked."""

import asyncio
from functools import partial

from support.callers.restartable_process import RestartableProcess
from support.faults.bounded_requests import Unanswered
from support.faults.fault_callers import QUIET, FaultCaller
from support.faults.findings import Rule
from support.faults.timeline import Span, moment
from support.waiting import eventually

SETTLE_SECONDS = 30.0


async def recover(caller: FaultCaller) -> float:
    """Its session works again, asked at every process. How many seconds that took."""
    world, began = caller.world, moment()
    for process in world.processes:
        within = max(began + world.bound - moment(), 1.0)
        what = f"{caller.name} works at {process.url}"
        try:
            await eventually(partial(_works, caller, process), what=what, within=within)
        except AssertionError as error:
            world.findings.add(Rule.SESSIONS_RECOVER, str(error))
    return moment() - began


async def _works(caller: FaultCaller, process: RestartableProcess) -> bool:
    call_id = caller.world.new_id()
    args = {"id": call_id, "text": call_id}
    try:
        result, _ = await caller.call("execute_tool", at=process, server="old", tool="echo", args=args)
        await caller.call("list_tasks", at=process)
    except Unanswered:
        return False
    return not result.get("isError")


async def settle(caller: FaultCaller) -> None:
    """Wait until every promise to the caller is kept, and nothing more arrives."""
    for timer in caller.ledger.intervals:
        await caller.call("delete_timer", timer_id=timer)
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            is_quiet = False
            while caller.ledger.lost or not is_quiet:
                await caller.let_go()
                await _answer_questions(caller)
                result, _ = await caller.call("await_activity", timeout_ms=100, own=0.1)
                is_quiet = result["structuredContent"]["triggers"] == QUIET
    except TimeoutError:
        pass  # the ledger says what is lost


async def _answer_questions(caller: FaultCaller) -> None:
    """Answer questions again whose answer or announcement was lost."""
    began = moment()
    result, _ = await caller.call("get_elicitations")
    for question in result["structuredContent"]["requests"]:
        await caller.answer(question["requestId"], Span(began, moment()))


async def check(caller: FaultCaller) -> None:
    for task_id in caller.ledger.completed:
        try:
            await caller.check_result(task_id)
        except AssertionError as error:
            caller.world.findings.add(Rule.PROMISES_KEPT, f"{caller.name}, result of {task_id}: {error}")
    caller.ledger.check(await _kept_events(caller), caller.world.findings)
    await _check_others(caller)


async def _check_others(caller: FaultCaller) -> None:
    own, findings = caller.caller, caller.world.findings
    for other in caller.others:
        before = list(findings.found)
        caller.caller = other.caller
        try:
            await caller.ask("list_timers", session=other.session)
            caller.world.counts["more sessions"] += 1
        except Unanswered as error:
            findings.found[:] = before
            if not caller.world.timeline.explains_loss(other.opened):
                name = other.session or other.caller.headers["mcp-session-id"]
                text = f"{name}, opened by {caller.name} in {other.opened.began:.3f}-{other.opened.ended:.3f}: {error}"
                findings.add(Rule.SESSIONS_KEPT, text)
        finally:
            caller.caller = own


async def _kept_events(caller: FaultCaller) -> list[str]:
    """The ids of all of them, delivered or not."""
    kept: list[str] = []
    last, has_more = "0", True
    while has_more:
        answer = await caller.ask("await_activity", timeout_ms=100, last_event_id=last, own=0.1)
        told = answer.message["result"]["structuredContent"]
        kept += [event["id"] for group in told["events"] for event in group["events"]]
        last, has_more = told["lastEventId"], "more" in told
    return kept
