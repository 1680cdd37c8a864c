"""When a worker that has ended is started again. Rules only: nothing here knows a process or a clock."""

from dataclasses import dataclass

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds
STEADY_SECONDS = 60.0  # whoever ran that long did not end because of how it was started
CANNOT_START = 2  # the exit code of a command that cannot be carried out as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnd:
    """How one run of a worker ended. A code below 0 is the signal that killed it."""

    code: int
    ran_seconds: float
    was_ready: bool


def pause_before_restart(end: WorkerEnd, last_pause: float | None) -> float:
    """Longer each time, until one has run for a while."""
    if last_pause is None or end.ran_seconds >= STEADY_SECONDS:
        return FIRST_PAUSE
    return min(last_pause * 2, LONGEST_PAUSE)


def is_hopeless(end: WorkerEnd, *, all_were_ready: bool) -> bool:
    """Whether no worker can start as things are. Once all were ready, a mistake made since ends nobody who runs."""
    return end.code == CANNOT_START and not end.was_ready and not all_were_ready
