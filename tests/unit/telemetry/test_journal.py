"""The newest requests are stored per session and in total, and changes can be queried."""

import random

import pytest

from emceepee.clock import milliseconds
from emceepee.ids import Ulids
from emceepee.telemetry.journal import BegunRequest, Journal, SpanBudget, SpanObserver, SpanOwner
from emceepee.telemetry.spans import Span, SpanKind, SpanWatch
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import FakeClock


def a_journal(room: SpanBudget, *, most: int = 10) -> Journal:
    clock = FakeClock()
    return Journal(room, clock, Ulids(lambda: milliseconds(clock.now())), most=most, changed=lambda: None)


def begin(journal: Journal, name: str) -> Span:
    return journal.begin(SpanKind.OWN_TOOL, name, None, {})


def names(journal: Journal, revision: int = 0) -> list[str]:
    return [span.name for span in journal.since(revision)]


def test_the_oldest_span_in_any_session_is_evicted_when_the_total_is_exceeded() -> None:
    room = SpanBudget(3)
    one, two = a_journal(room), a_journal(room)
    begin(one, "a")
    begin(two, "b")
    begin(one, "c")
    begin(two, "d")
    assert (names(one), names(two), len(room)) == (["c"], ["b", "d"], 3)


def test_a_session_stores_no_more_spans_than_its_own_share() -> None:
    room = SpanBudget(100)
    journal = a_journal(room, most=2)
    for name in "abc":
        begin(journal, name)
    assert (names(journal), len(room)) == (["b", "c"], 2)


def test_a_closed_session_frees_its_spans_for_others() -> None:
    room = SpanBudget(2)
    one, two = a_journal(room), a_journal(room)
    begin(one, "a")
    one.close()
    begin(two, "b")
    begin(two, "c")
    assert (names(two), len(room)) == (["b", "c"], 2)


def test_only_changed_spans_are_sent_again() -> None:
    journal = a_journal(SpanBudget(10))
    first, _ = begin(journal, "a"), begin(journal, "b")
    seen = journal.revision
    assert names(journal, seen) == []
    first.replied({})
    assert names(journal, seen) == ["a"]


def test_a_request_span_ends_only_once() -> None:
    journal = a_journal(SpanBudget(10))
    span = begin(journal, "a")
    span.cancelled()
    span.replied({"content": []})
    assert (span.status, span.result) == ("cancelled", None)


def test_a_span_is_found_by_its_unique_id() -> None:
    journal = a_journal(SpanBudget(10))
    begin(journal, "a")
    [span] = journal.since(0)
    assert len(span.span_id) == 26
    assert journal.find(span.span_id) is span
    assert journal.since(0)[0].span_id == span.span_id
    assert journal.find("") is None


def test_the_span_budget_and_the_journals_always_agree() -> None:
    """For spans that begin and end in any order."""
    choose = random.Random(7)
    room = SpanBudget(20)
    journals = [a_journal(room, most=choose.randint(1, 12)) for _ in range(5)]
    for step in range(2000):
        journal = choose.choice(journals)
        if choose.random() < 0.02:
            journal.close()
        else:
            begin(journal, str(step))
        assert len(room) == sum(len(journal) for journal in journals) <= 20


def test_a_long_span_name_is_shortened_without_revealing_a_secret() -> None:
    journal = a_journal(SpanBudget(10))
    secret = f"https://{'u' * 300}:hunter2{'x' * 300}@host/path?token=hunter2"
    span = journal.begin(SpanKind.RESOURCE_READ, secret + "y" * 3_000_000, "s" * 1000, {})
    span.failed(secret + "z" * 1000)
    assert span.name == "https://host/path?token=***…"
    assert len(span.server or "") == 200
    assert span.error is not None
    assert "hunter2" not in span.name + span.error
    assert "uuu" not in span.name + span.error


class Witness(SpanObserver):
    """Records the principal and the name of each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def begin(self, begun: BegunRequest) -> SpanWatch:
        self.seen.append((begun.owner.principal, begun.span.name))
        return SpanWatch()


def test_spans_of_an_unstored_journal_reach_only_observers() -> None:
    witness, clock = Witness(), FakeClock()
    room = SpanBudget(10, (witness,))
    journal = Journal(room, clock, Ulids(lambda: 0), most=10, changed=lambda: None, owner=SpanOwner("01S", "ann"))
    for owner, name in ((None, "a"), (SpanOwner("", "bob"), "b")):
        unkept = journal.unkept(owner)
        assert unkept is not None
        begin(unkept, name).replied({})
    assert witness.seen == [("ann", "a"), ("bob", "b")]
    assert (len(room), len(journal), journal.revision) == (0, 0, 0)


def test_without_observers_there_is_no_unstored_journal() -> None:
    assert a_journal(SpanBudget(10)).unkept() is None


def test_a_url_with_an_endless_password_leaves_nothing_in_a_span_name() -> None:
    span = begin(a_journal(SpanBudget(10)), f"https://ann:{'hunter2' * 10_000}@host/path")
    assert span.name == "https://…"


class Noting(SpanObserver, SpanWatch):
    """Records its notifications, and raises in the one named by `fails_at`."""

    def __init__(self, fails_at: str = "") -> None:
        self.notes: list[str] = []
        self._fails_at = fails_at

    def _note(self, what: str) -> None:
        if what == self._fails_at:
            raise KeyError("a defect")
        self.notes.append(what)

    def begin(self, begun: BegunRequest) -> SpanWatch:
        self._note("begin")
        return self

    def became_task(self, span: Span) -> None:
        self._note("became_task")

    def ended(self, span: Span, result: JsonObject | None) -> None:
        self._note("ended")

    def session_ended(self, owner: SpanOwner, seconds: float) -> None:
        self._note("session_ended")


@pytest.mark.parametrize("moment", ["begin", "became_task", "ended", "session_ended"])
def test_a_failing_span_observer_is_logged_and_affects_neither_the_request_nor_other_observers(
    moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    failing, other = Noting(fails_at=moment), Noting()
    journal = a_journal(SpanBudget(10, (failing, other)))
    span = begin(journal, "a")
    span.became_task("01TASK")
    span.replied({})
    journal.close()
    assert (span.task_id, str(span.status)) == ("01TASK", "success")
    assert other.notes == ["begin", "became_task", "ended", "session_ended"]
    (record,) = caplog.records
    assert record.message == "request_not_observed"
    assert vars(record)["fields"] == {"observer": "Noting", "error": "KeyError('a defect')"}
