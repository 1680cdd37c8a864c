"""Which replica reports a session while it moves between replicas, and when it is gone."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis.strategies import lists, sampled_from, tuples

from emceepee.console.peers import OWN, Peer
from emceepee.console.session_reporters import SessionReporters

A, B = Peer("1.1"), Peer("2.2")


def test_a_reported_session_is_shown_until_its_reporter_ends_it() -> None:
    reporters = SessionReporters()
    assert reporters.tell(A, "s")
    assert reporters.tell(A, "s")
    assert reporters.reporter_of("s") == A
    assert reporters.end(A, "s")
    assert reporters.reporter_of("s") is None


def test_the_end_at_the_old_replica_does_not_remove_a_session_that_the_new_one_reported() -> None:
    reporters = SessionReporters()
    reporters.tell(A, "s")
    assert reporters.tell(B, "s")
    assert not reporters.end(A, "s")
    assert reporters.reporter_of("s") == B
    assert reporters.end(B, "s")


def test_a_late_report_of_the_old_replica_is_ignored() -> None:
    reporters = SessionReporters()
    reporters.tell(OWN, "s")
    reporters.tell(A, "s")
    assert not reporters.tell(OWN, "s")
    assert reporters.tell(A, "s")
    assert not reporters.end(OWN, "s")


def test_a_session_that_moves_back_and_forth_belongs_to_its_latest_reporter() -> None:
    reporters = SessionReporters()
    reporters.tell(A, "s")
    reporters.tell(B, "s")
    reporters.end(A, "s")
    assert reporters.tell(A, "s")
    assert not reporters.end(B, "s")
    assert reporters.reporter_of("s") == A


def test_if_the_latest_reporter_loses_a_session_the_other_reporter_still_has_it() -> None:
    reporters = SessionReporters()
    reporters.tell(A, "s")
    reporters.tell(B, "s")
    assert not reporters.end(B, "s")
    assert reporters.tell(A, "s")


def test_a_replica_that_leaves_removes_only_sessions_that_no_other_replica_reported() -> None:
    reporters = SessionReporters()
    for session_id in ("gone", "also gone", "moved"):
        reporters.tell(A, session_id)
    reporters.tell(B, "moved")
    assert reporters.leave(A) == ["also gone", "gone"]
    assert reporters.leave(A) == []
    assert reporters.reporter_of("moved") == B


def test_a_restarted_feed_removes_sessions_that_it_does_not_repeat() -> None:
    reporters = SessionReporters()
    for session_id in ("kept", "gone", "moved"):
        reporters.tell(A, session_id)
    reporters.tell(B, "moved")
    reporters.begin(A)
    assert reporters.tell(A, "kept")
    assert reporters.complete(A) == ["gone"]
    assert [reporters.reporter_of(each) for each in ("kept", "gone", "moved")] == [A, None, B]


def test_the_first_feed_of_a_replica_removes_nothing() -> None:
    reporters = SessionReporters()
    reporters.tell(OWN, "s")
    reporters.begin(A)
    assert reporters.complete(A) == []


STEPS = tuples(sampled_from(["tell", "end", "leave", "begin", "complete"]), sampled_from([OWN, A, B]))


@given(lists(tuples(STEPS, sampled_from(["s", "t"])), max_size=40))
def test_the_page_shows_a_session_exactly_as_long_as_some_replica_reports_it(
    steps: list[tuple[tuple[str, Peer], str]],
) -> None:
    reporters, page = SessionReporters(), set[str]()
    told: dict[Peer, set[str]] = {}
    unconfirmed: dict[Peer, set[str]] = {}
    for (step, reporter), session_id in steps:
        own = told.setdefault(reporter, set())
        match step:
            case "tell":
                if reporters.tell(reporter, session_id):
                    page.add(session_id)
                own.add(session_id)
                unconfirmed.get(reporter, set()).discard(session_id)
            case "end":
                if reporters.end(reporter, session_id):
                    page.remove(session_id)
                own.discard(session_id)
            case "leave":
                page.difference_update(reporters.leave(reporter))
                own.clear()
                unconfirmed.pop(reporter, None)
            case "begin":
                reporters.begin(reporter)
                unconfirmed[reporter] = set(own)
            case "complete":
                page.difference_update(reporters.complete(reporter))
                own -= unconfirmed.pop(reporter, set())
        assert page == set(_all(told))


def _all(told: dict[Peer, set[str]]) -> Iterator[str]:
    for own in told.values():
        yield from own
