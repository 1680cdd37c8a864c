"""Whose word counts for a session while it moves from one replica to another, and when it is gone."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis.strategies import lists, sampled_from, tuples

from emceepee.console.peers import OWN, Peer
from emceepee.console.tellers import Tellers

A, B = Peer("1.1"), Peer("2.2")


def test_what_one_tells_of_is_shown_until_it_ends() -> None:
    tellers = Tellers()
    assert tellers.tell(A, "s")
    assert tellers.tell(A, "s")
    assert tellers.teller_of("s") == A
    assert tellers.end(A, "s")
    assert tellers.teller_of("s") is None


def test_the_end_at_the_old_one_does_not_remove_what_the_new_one_told_of() -> None:
    tellers = Tellers()
    tellers.tell(A, "s")
    assert tellers.tell(B, "s")
    assert not tellers.end(A, "s")
    assert tellers.teller_of("s") == B
    assert tellers.end(B, "s")


def test_a_late_word_of_the_old_one_is_passed_over() -> None:
    tellers = Tellers()
    tellers.tell(OWN, "s")
    tellers.tell(A, "s")
    assert not tellers.tell(OWN, "s")
    assert tellers.tell(A, "s")
    assert not tellers.end(OWN, "s")


def test_a_session_that_goes_back_and_forth_is_where_it_came_last() -> None:
    tellers = Tellers()
    tellers.tell(A, "s")
    tellers.tell(B, "s")
    tellers.end(A, "s")
    assert tellers.tell(A, "s")
    assert not tellers.end(B, "s")
    assert tellers.teller_of("s") == A


def test_if_the_one_that_came_last_was_wrong_the_other_still_has_it() -> None:
    tellers = Tellers()
    tellers.tell(A, "s")
    tellers.tell(B, "s")
    assert not tellers.end(B, "s")
    assert tellers.tell(A, "s")


def test_who_leaves_takes_along_what_nobody_else_told_of() -> None:
    tellers = Tellers()
    for session_id in ("gone", "also gone", "moved"):
        tellers.tell(A, session_id)
    tellers.tell(B, "moved")
    assert tellers.leave(A) == ["also gone", "gone"]
    assert tellers.leave(A) == []
    assert tellers.teller_of("moved") == B


def test_a_feed_that_begins_anew_removes_what_it_does_not_tell_again() -> None:
    tellers = Tellers()
    for session_id in ("kept", "gone", "moved"):
        tellers.tell(A, session_id)
    tellers.tell(B, "moved")
    tellers.begin(A)
    assert tellers.tell(A, "kept")
    assert tellers.complete(A) == ["gone"]
    assert [tellers.teller_of(each) for each in ("kept", "gone", "moved")] == [A, None, B]


def test_the_first_feed_removes_nothing() -> None:
    tellers = Tellers()
    tellers.tell(OWN, "s")
    tellers.begin(A)
    assert tellers.complete(A) == []


STEPS = tuples(sampled_from(["tell", "end", "leave", "begin", "complete"]), sampled_from([OWN, A, B]))


@given(lists(tuples(STEPS, sampled_from(["s", "t"])), max_size=40))
def test_the_page_has_a_session_exactly_as_long_as_someone_tells_of_it(
    steps: list[tuple[tuple[str, Peer], str]],
) -> None:
    tellers, page = Tellers(), set[str]()
    told: dict[Peer, set[str]] = {}
    unconfirmed: dict[Peer, set[str]] = {}
    for (step, teller), session_id in steps:
        own = told.setdefault(teller, set())
        match step:
            case "tell":
                if tellers.tell(teller, session_id):
                    page.add(session_id)
                own.add(session_id)
                unconfirmed.get(teller, set()).discard(session_id)
            case "end":
                if tellers.end(teller, session_id):
                    page.remove(session_id)
                own.discard(session_id)
            case "leave":
                page.difference_update(tellers.leave(teller))
                own.clear()
                unconfirmed.pop(teller, None)
            case "begin":
                tellers.begin(teller)
                unconfirmed[teller] = set(own)
            case "complete":
                page.difference_update(tellers.complete(teller))
                own -= unconfirmed.pop(teller, set())
        assert page == set(_all(told))


def _all(told: dict[Peer, set[str]]) -> Iterator[str]:
    for own in told.values():
        yield from own
