"""The parts of a run, by name and in order."""

from collections.abc import Callable
from functools import partial

from bench.measure import (
    calls,
    context,
    fan_out,
    growth,
    large_results,
    long_run,
    memory,
    replicas,
    sessions,
    start_up,
    state,
    tools_list,
    wake,
)
from bench.results import Results
from bench.settings import Settings
from bench.work import SHAPES

Measure = Callable[[Settings, Results], None]

PARTS: dict[str, Measure] = {
    **{shape.key: partial(calls.measure, shape=shape) for shape in SHAPES},
    sessions.PART: sessions.measure,
    memory.PART: memory.measure,
    fan_out.PART: fan_out.measure,
    wake.PART: wake.measure,
    state.PART: state.measure,
    large_results.PART: large_results.measure,
    replicas.PART: replicas.measure,
    tools_list.PART: tools_list.measure,
    context.PART: context.measure,
    start_up.PART: start_up.measure,
    growth.SESSIONS_PART: partial(growth.measure, part=growth.SESSIONS_PART),
    growth.BACKENDS_PART: partial(growth.measure, part=growth.BACKENDS_PART),
    long_run.PART: long_run.measure,
}
QUICK_PARTS = ("http-http", "stdio-stdio", memory.PART, fan_out.PART, wake.PART, state.PART, replicas.PART)
