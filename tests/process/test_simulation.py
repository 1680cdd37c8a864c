"""A tenth of fifty replicas is lost at once, on a fake clock. The invariants hold on a machine under any load."""

from dataclasses import replace

import pytest

from bench.simulate import main
from bench.simulation.scenario import Balancing, Scenario
from bench.simulation.tally import Phase, Tally, Way
from bench.simulation.world import World
from emceepee.replicas.forwarder import CONNECT_SECONDS
from emceepee.server.http.request_router import LONGEST_PAUSE
from emceepee.sessions.directory.directory import SWEEP_SECONDS
from emceepee.sessions.directory.placement import READERS, TURN_SECONDS
from emceepee.state.replica import GRACE_SHARE, RENEWALS_PER_LEASE
from support.figures import record_figure
from support.matrix import matrix

SMALL = Scenario(replicas=50, sessions=8_000, requests_per_second=200, moved=0.0)
LARGE = replace(SMALL, sessions=20_000, requests_per_second=500)
LEASE = SMALL.lease_seconds
LOSSY = {
    f"{balancing}, {size.sessions} sessions": replace(size, balancing=balancing)
    for balancing in Balancing
    for size in (SMALL, LARGE)
}
QUICK_LOSSY = [name for name, scenario in LOSSY.items() if scenario.sessions == SMALL.sessions]


@pytest.fixture(scope="module", params=matrix(LOSSY, representatives=QUICK_LOSSY))
def lossy(request: pytest.FixtureRequest) -> tuple[Scenario, Tally]:
    scenario = LOSSY[request.param]
    return scenario, World(scenario).run()


def test_every_session_of_a_lost_replica_is_served_again(lossy: tuple[Scenario, Tally]) -> None:
    _, tally = lossy
    assert tally.takeovers
    assert (tally.never_served, tally.forgotten) == (0, set())
    assert sum(each.unknown for each in tally.requests.values()) == 0


def test_a_takeover_takes_at_most_a_lease_and_its_announcement(lossy: tuple[Scenario, Tally]) -> None:
    """A lease may have been renewed in the moment of the loss. Then someone reads who is alive, and tells the others.

    A connection attempt during that time returns later.
    """
    scenario, tally = lossy
    bound = LEASE + 2 * LEASE / RENEWALS_PER_LEASE + CONNECT_SECONDS + LONGEST_PAUSE + 2 * scenario.work_seconds
    record_figure(f"{scenario.balancing}: {max(tally.takeovers):.2f} s of {bound:.2f} s that a takeover may take")
    assert min(tally.takeovers) >= LEASE * (1 - 1 / RENEWALS_PER_LEASE)
    assert max(tally.takeovers) <= bound
    assert max(tally.requests[Phase.DURING].waits) <= bound


def test_timers_of_lost_replicas_fire_once_and_soon(lossy: tuple[Scenario, Tally]) -> None:
    _, tally = lossy
    assert tally.late_timers
    assert (tally.never_fired, tally.fired_twice) == (0, 0)
    assert max(tally.late_timers) <= 2 * LEASE * (1 + GRACE_SHARE)


def test_without_losses_a_request_needs_one_hop_at_most(lossy: tuple[Scenario, Tally]) -> None:
    scenario, tally = lossy
    before = tally.requests[Phase.BEFORE]
    assert max(before.hops) <= 1
    assert before.wrong_guesses == 0
    local = before.served[Way.LOCAL] / before.count
    assert local == 1 if scenario.balancing is Balancing.BY_SLOT else local < 0.1


def test_a_paused_replica_serves_and_changes_no_session_that_another_has_taken() -> None:
    """With few sessions, so many requests come while another one for the same session is paused."""
    tally = World(replace(SMALL, sessions=500, lost=0.0, paused=0.2, changing=0.5, work_seconds=0.5)).run()
    assert tally.requests[Phase.DURING].served[Way.TAKEN] > 0, "others have taken sessions"
    assert tally.fenced_commits > 0, "and their holders did not know"
    assert (tally.stale_serves, tally.fired_twice, tally.never_fired) == (0, 0, 0)


def test_the_shared_work_of_replicas_does_not_grow_with_their_number() -> None:
    """This is the list of living processes and the timers of dead ones. One sweep per minute is extra."""
    scenario = replace(SMALL, replicas=400, requests_per_second=100)
    tally = World(scenario).run()
    assert tally.keeps_promises
    seconds = range(5, int(scenario.seconds))
    reads, looks = (sum(tally.rates(kind, seconds)) / len(seconds) for kind in ("list of replicas", "take what is due"))
    assert reads <= 1.2 * READERS * RENEWALS_PER_LEASE / LEASE
    assert looks <= 1.2 * (1 / TURN_SECONDS + scenario.replicas / SWEEP_SECONDS)


def test_the_simulation_prints_its_findings(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--replicas", "10", "--sessions", "500", "--requests-per-second", "50", "--balancing", "round-robin"]
    assert main(options) == 0
    printed = capsys.readouterr().out
    for words in ("hops per request", "wrong guesses", "until a session was served again", "renewal", "peak during"):
        assert words in printed
