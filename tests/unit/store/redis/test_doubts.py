from emceepee.store.redis.doubts import Doubts
from emceepee.store.store import Lease, RecordKey
from support.store.stored_sessions import change, head

LEASE = Lease(3, 7)


def test_a_commit_in_doubt_counts_until_its_outcome_is_known() -> None:
    doubts = Doubts()
    assert not doubts
    for _ in range(2):
        doubts.add(change(head("s1"), LEASE, a="1"))
    assert doubts
    assert doubts.count(change(head("s1"), LEASE)) == 2
    assert doubts.count(change(head("s2"), LEASE)) == 0
    assert doubts.count(change(head("s1"), Lease(4, 7))) == 0, "it was taken anew"
    doubts.settle("s1")
    assert not doubts


def test_what_may_have_been_put_and_is_not_any_more_is_deleted() -> None:
    doubts = Doubts()
    doubts.add(change(head("s1"), LEASE, "z", a="1", b="1"))
    doubts.add(change(head("s1"), LEASE, c="1"))
    again = change(head("s1"), LEASE, "y", b="2")
    assert doubts.deletes(again) == {RecordKey("event", each) for each in ("a", "c", "y")}
    assert doubts.deletes(change(head("s1"), Lease(4, 7), "y")) == {RecordKey("event", "y")}
