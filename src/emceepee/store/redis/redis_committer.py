"""Commits of sessions, each of which is atomic."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count

from emceepee.clock import Clock
from emceepee.store.redis.connection.commands import Commands, ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.redis_connection import Word
from emceepee.store.redis.held_sessions import HeldSessions
from emceepee.store.redis.keys import KeyNames, session_name
from emceepee.store.redis.scripts.session_scripts import COMMIT
from emceepee.store.redis.session_codec import record_field, write_keys, write_moment
from emceepee.store.redis.slot_lease import SlotLease
from emceepee.store.redis.unconfirmed_commits import UnconfirmedCommits
from emceepee.store.store import Commit, Lease
from emceepee.store.timestamps import microseconds

KEPT_LONGER = timedelta(days=1)  # than the session needs, so that timers survive a time without replicas
_LAG = KEPT_LONGER // timedelta(microseconds=1) // 4  # the expiry in Redis may lag by this, which saves commands
MOST_AT_ONCE = 64  # sessions per script, because a script blocks Redis
FIRST_FENCE = 1


class RedisCommitter:
    """Sends commits to Redis as script calls, and evaluates the replies."""

    def __init__(
        self,
        commands: Commands,
        names: KeyNames,
        clock: Clock,
        lease: SlotLease,
        held_sessions: HeldSessions,
        unconfirmed_commits: UnconfirmedCommits,
    ) -> None:
        self._commands, self._names, self._clock = commands, names, clock
        self._lease, self._held_sessions, self._unconfirmed_commits = lease, held_sessions, unconfirmed_commits
        self._numbers = count(1)

    async def commit(self, commits: Sequence[Commit], *, is_strict: bool = False) -> list[Lease | None]:
        """Commit as described in `Store.commit`. With `is_strict`, a commit gets no lease if a key is taken.

        Raises: StoreUnavailable, after which the same may be tried again.
        """
        now = self._clock.now()
        groups = list(self._groups(commits))
        calls = [self._call(tag, group, now, is_strict=is_strict) for tag, group in groups]
        try:
            replies = await self._commands.run_all(calls)
        except UnknownOutcome as error:
            self._keep_in_doubt(commits)
            raise error.because from None
        except BaseException as error:
            if not isinstance(error, Exception):  # cancelled
                self._keep_in_doubt(commits)
            raise
        leases: list[Lease | None] = [None] * len(commits)
        for (tag, group), revisions in zip(groups, replies, strict=True):
            for (number, commit), revision in zip(group, revisions, strict=True):
                leases[number] = self._take_note(tag, commit, revision)
        return leases

    def _groups(self, commits: Sequence[Commit]) -> Iterator[tuple[str, list[tuple[int, Commit]]]]:
        """Group commits by partition, in their order, with at most MOST_AT_ONCE per group."""
        by_tag: dict[str, list[tuple[int, Commit]]] = {}
        for number, commit in enumerate(commits):
            by_tag.setdefault(self._names.tag_of(commit.head.principal), []).append((number, commit))
        for tag, group in by_tag.items():
            for start in range(0, len(group), MOST_AT_ONCE):
                yield tag, group[start : start + MOST_AT_ONCE]

    def _call(self, tag: str, group: Sequence[tuple[int, Commit]], now: datetime, *, is_strict: bool) -> ScriptCall:
        words: list[Word] = [tag, self._lease.owner, self._lease.epoch, microseconds(now), _LAG]
        for _, commit in group:
            self._add_words(words, commit, now, is_strict=is_strict)
        return ScriptCall(COMMIT, [session_name(tag, commit.head.session_id) for _, commit in group], words)

    def _add_words(self, words: list[Word], commit: Commit, now: datetime, *, is_strict: bool) -> None:
        head, lease, puts = commit.head, commit.lease, commit.puts
        deletes, unconfirmed_commits = commit.deletes, 0
        if self._unconfirmed_commits:
            deletes, unconfirmed_commits = (
                self._unconfirmed_commits.deletes(commit),
                self._unconfirmed_commits.count(commit),
            )
        wanted_until = head.expires_at if head.due_at is None else max(head.expires_at, head.due_at)
        till = max(wanted_until, now) + KEPT_LONGER
        words += (
            head.session_id,
            1 if is_strict else 0,
            lease.fence,
            lease.revision,
            unconfirmed_commits,
            next(self._numbers),
            write_moment(head.expires_at),
            write_moment(head.due_at),
            head.principal,
            write_keys(head.keys),
            microseconds(till),
            (till - now) // timedelta(milliseconds=1),
            2 * len(puts),
            len(deletes),
        )
        for key, data in puts.items():
            words.append(record_field(key))
            words.append(data)
        words += map(record_field, deletes)

    def _take_note(self, tag: str, commit: Commit, revision: int) -> Lease | None:
        session_id = commit.head.session_id
        self._unconfirmed_commits.settle(session_id)
        if not revision:
            if commit.lease.revision:
                self._held_sessions.drop(session_id, commit.lease.fence)
            return None
        fence = commit.lease.fence if commit.lease.revision else FIRST_FENCE
        self._held_sessions.add(session_id, tag, fence)
        return Lease(fence, revision)

    def _keep_in_doubt(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            self._unconfirmed_commits.add(commit)
