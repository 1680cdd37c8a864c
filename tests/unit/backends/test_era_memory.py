from emceepee.backends.era_memory import CORRECTED_SECONDS, EraMemory
from emceepee.backends.link import ServerFacts
from emceepee.backends.spec import BackendSpec, HttpTarget
from support.fakes.clock import FakeClock


def test_the_memory_of_a_correction_outlives_the_memory_of_an_era() -> None:
    clock = FakeClock()
    memory, target = EraMemory(clock), HttpTarget(url="http://x.test")
    memory.learn(target, ServerFacts(is_modern=True))
    memory.correct(target)
    clock.jump(CORRECTED_SECONDS - 1)
    assert memory.recall(target) == "legacy"
    clock.jump(1)
    assert memory.recall(target) is None
    assert BackendSpec(name="x", target=target).mode == "auto"
