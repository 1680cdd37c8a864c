"""A recording that a person starts on one connection."""

import pytest

from emceepee.backends.recording.on_demand_recording import OnDemandRecording
from emceepee.backends.recording.recordings import MemoryRecording, Recordings
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.errors import BackendDisconnected, InvalidArguments
from emceepee.state.limits import Limits
from support.fakes.clock import FakeClock


class Scene:
    """A connection with the methods that its recording uses."""

    def __init__(self) -> None:
        self._recordings = Recordings(FakeClock(), Limits())
        self.recording = OnDemandRecording("shop", self._create, self._reconnect, self._signal_change)
        self.is_down = False
        self.reconnects = self.changes = 0

    def _create(self) -> MemoryRecording:
        return self._recordings.in_memory(BackendSpec(name="shop", target=StdioTarget(command="shop")))

    async def _reconnect(self) -> None:
        assert self.recording.recorder is not None  # the fresh link is recorded
        self.reconnects += 1
        if self.is_down:
            raise BackendDisconnected("it is down")

    def _signal_change(self) -> None:
        self.changes += 1


async def test_an_on_demand_recording_begins_on_a_fresh_link_and_ends_with_the_recorded_lines() -> None:
    scene = Scene()
    await scene.recording.begin()
    assert (scene.recording.is_on, scene.reconnects, scene.changes) == (True, 1, 0)
    with pytest.raises(InvalidArguments, match="already"):
        await scene.recording.begin()
    recorder = scene.recording.recorder
    assert '"emceepee_recording"' in scene.recording.end()
    assert (scene.recording.is_on, scene.recording.recorder, scene.changes) == (False, None, 1)
    assert recorder is not None
    assert not recorder.is_open
    with pytest.raises(InvalidArguments, match="not being recorded"):
        scene.recording.end()


async def test_a_server_that_cannot_be_connected_is_not_recorded() -> None:
    scene = Scene()
    scene.is_down = True
    with pytest.raises(BackendDisconnected):
        await scene.recording.begin()
    assert (scene.recording.is_on, scene.recording.recorder) == (False, None)


async def test_a_dropped_on_demand_recording_accepts_no_more_entries() -> None:
    scene = Scene()
    scene.recording.drop()
    await scene.recording.begin()
    recorder = scene.recording.recorder
    scene.recording.drop()
    assert recorder is not None
    assert (scene.recording.is_on, recorder.is_open) == (False, False)
