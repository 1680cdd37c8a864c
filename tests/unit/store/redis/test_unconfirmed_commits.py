from emceepee.store.redis.unconfirmed_commits import UnconfirmedCommits
from emceepee.store.store import Lease, RecordKey
from support.store.stored_sessions import change, head

LEASE = Lease(3, 7)


def test_an_unconfirmed_commit_counts_until_its_outcome_is_known() -> None:
    unconfirmed_commits = UnconfirmedCommits()
    assert not unconfirmed_commits
    for _ in range(2):
        unconfirmed_commits.add(change(head("s1"), LEASE, a="1"))
    assert unconfirmed_commits
    assert unconfirmed_commits.count(change(head("s1"), LEASE)) == 2
    assert unconfirmed_commits.count(change(head("s2"), LEASE)) == 0
    assert unconfirmed_commits.count(change(head("s1"), Lease(4, 7))) == 0, "it was taken again"
    unconfirmed_commits.settle("s1")
    assert not unconfirmed_commits


def test_an_obsolete_record_of_an_unconfirmed_commit_is_deleted() -> None:
    unconfirmed_commits = UnconfirmedCommits()
    unconfirmed_commits.add(change(head("s1"), LEASE, "z", a="1", b="1"))
    unconfirmed_commits.add(change(head("s1"), LEASE, c="1"))
    again = change(head("s1"), LEASE, "y", b="2")
    assert unconfirmed_commits.deletes(again) == {RecordKey("event", each) for each in ("a", "c", "y")}
    assert unconfirmed_commits.deletes(change(head("s1"), Lease(4, 7), "y")) == {RecordKey("event", "y")}
