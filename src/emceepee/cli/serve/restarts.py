"""Rules for restarting workers, without processes or a clock."""

from dataclasses import dataclass

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds
STEADY_SECONDS = 60.0  # a worker that ran this long did not fail because of its startup
CANNOT_START = 2  # the exit code for configuration and usage errors


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnd:
    """The end of a worker's run. A negative code is the number of the signal that killed it."""

    code: int
    ran_seconds: float
    was_ready: bool


def pause_before_restart(end: WorkerEnd, last_pause: float | None) -> float:
    """Return the delay, which doubles each time up to a limit and resets after a long run."""
    if last_pause is None or end.ran_seconds >= STEADY_SECONDS:
        return FIRST_PAUSE
    return min(last_pause * 2, LONGEST_PAUSE)


def is_hopeless(end: WorkerEnd, *, all_were_ready: bool) -> bool:
    """Return whether no worker can start. Once all have been ready, later mistakes must not stop running workers."""
    return end.code == CANNOT_START and not end.was_ready and not all_were_ready
