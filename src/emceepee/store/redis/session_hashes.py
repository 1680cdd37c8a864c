"""Takes, releases, and deletes sessions in Redis, and stores the chunks of their large parts.

A take first reads the holder of a session, then checks whether the holder's lease has expired. It takes the session
only if the holder is still the same. This order prevents a race with an owner that regains its lease in between,
because the name of that owner changes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from emceepee.state.session_key import SessionKey
from emceepee.store.redis.connection.commands import Commands, ScriptCall, UnknownOutcome, run_command, run_script
from emceepee.store.redis.connection.redis_connection import Word
from emceepee.store.redis.held_sessions import HeldSessions
from emceepee.store.redis.keys import KeyNames, chunks_name, digest, session_name
from emceepee.store.redis.scripts.session_scripts import (
    DUE,
    EXPIRY,
    FORGET,
    HAND_TO,
    NEXT_DUE,
    PUT_CHUNKS,
    TAKE_BY_ID,
    TAKE_BY_KEY,
)
from emceepee.store.redis.session_codec import read_moment, read_session
from emceepee.store.redis.slot_lease import Roster, SlotLease, epoch_of
from emceepee.store.redis.unconfirmed_commits import UnconfirmedCommits
from emceepee.store.store import HeldElsewhere, Lease, StoredSession
from emceepee.store.timestamps import microseconds

AT_ONCE = 256  # sessions per script call
DROPPED_AT_ONCE = 1000  # chunks per command
MOST_STRAYS = 1000  # per owner and partition, in one search
_HELD = "Another emceepee process that uses the same Redis holds this session. Use that process, or stop it."


class _Candidate(NamedTuple):
    tag: str
    session_id: str
    moment: datetime
    holder: str  # owner/fence

    @property
    def owner(self) -> str:
        return self.holder.rpartition("/")[0]


class Sessions:
    """Raises: StoreUnavailable."""

    def __init__(
        self,
        commands: Commands,
        names: KeyNames,
        lease: SlotLease,
        held_sessions: HeldSessions,
        unconfirmed_commits: UnconfirmedCommits,
    ) -> None:
        self._commands, self._names, self._lease = commands, names, lease
        self._held_sessions, self._unconfirmed_commits = held_sessions, unconfirmed_commits

    async def take(self, key: SessionKey) -> StoredSession | None:
        """Raises: HeldElsewhere."""
        tag, expected = self._names.tag_of(key.principal), ""
        while True:
            name = digest(key)
            arguments = [tag, name, self._lease.owner, self._lease.epoch, expected]
            with self._keeping_track():
                (found,) = await self._commands.run_all([ScriptCall(TAKE_BY_KEY, [f"{tag}:key:{name}"], arguments)])
            if found is None:
                return None
            if not found[1]:
                return self._taken(tag, found)
            holder = found[1].decode()
            await self._refuse_if_held(holder.rpartition("/")[0])
            expected = holder

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        if self._held_sessions.may_have_lost_track:
            await self._release_strays()
        limit = microseconds(now)
        calls = [ScriptCall(DUE, [f"{tag}:owners"], [tag, limit, most]) for tag in self._names.tags]
        found = [each for each in await self._candidates(calls) if each.session_id not in self._held_sessions]
        free = sorted(await self._free(found), key=lambda each: each.moment)[:most]
        calls = [
            ScriptCall(
                TAKE_BY_ID,
                [session_name(each.tag, each.session_id)],
                [each.tag, each.session_id, self._lease.owner, self._lease.epoch, each.holder],
            )
            for each in free
        ]
        with self._keeping_track():
            taken = await self._commands.run_all(calls) if calls else []
        return [self._taken(each.tag, reply) for each, reply in zip(free, taken, strict=True) if reply is not None]

    async def next_due(self) -> datetime | None:
        calls = [ScriptCall(NEXT_DUE, [f"{tag}:owners"], [tag]) for tag in self._names.tags]
        told = [reply for reply in await self._ask(calls) if reply]
        firsts = [(owner.decode(), read_moment(due)) for reply in told for owner, due in _in_turn(reply, 2)]
        if owners := {owner for owner, _ in firsts if owner}:
            roster = await self._roster(owners)
            firsts = [each for each in firsts if self._is_free(each[0], roster)]
        return min((due for _, due in firsts), default=None)

    async def hand_to(self, owner: str, leases: Mapping[str, Lease]) -> Collection[str]:
        """Set the owner of sessions that this process holds; "" releases them. Return the ids that it does not hold."""
        by_tag: dict[str, list[str]] = {}
        for session_id in leases:
            tag = self._held_sessions.tag_of(session_id) or (None if self._commands.is_spread else self._names.tags[0])
            if tag is not None:
                by_tag.setdefault(tag, []).append(session_id)
        groups = [(tag, each) for tag, session_ids in by_tag.items() for each in _chunks(session_ids)]
        calls = []
        for tag, session_ids in groups:
            pairs: list[Word] = [word for each in session_ids for word in (each, leases[each].fence)]
            keys = [session_name(tag, each) for each in session_ids]
            calls.append(ScriptCall(HAND_TO, keys, [tag, self._lease.epoch, owner, *pairs]))
        replies = await self._ask(calls) if calls else []
        done = {
            session_id
            for (_, session_ids), reply in zip(groups, replies, strict=True)
            for session_id, is_done in zip(session_ids, reply, strict=True)
            if is_done
        }
        return [session_id for session_id in leases if session_id not in done]

    async def release(self, leases: Mapping[str, Lease]) -> None:
        try:
            with self._keeping_track():
                refused = await self.hand_to("", leases)
        finally:  # also after an error, because callers do not retry a release
            for session_id, lease in leases.items():
                self._held_sessions.drop(session_id, lease.fence)
        for session_id in leases.keys() - refused:
            self._unconfirmed_commits.settle(session_id)

    async def forget(self, session_id: str, lease: Lease) -> None:
        tag = self._held_sessions.tag_of(session_id)
        if tag is None:
            if self._commands.is_spread:
                return
            tag = self._names.tags[0]
        arguments: list[Word] = [tag, session_id, self._lease.epoch, lease.fence, ""]
        (is_gone,) = await self._ask([ScriptCall(FORGET, [session_name(tag, session_id)], arguments)])
        if is_gone:
            self._unconfirmed_commits.settle(session_id)
            self._held_sessions.drop(session_id)

    async def forget_expired(self, now: datetime, most: int) -> int:
        """Delete sessions in the order of their expiry. Each partition is read only as far as necessary."""
        tags = self._names.tags
        firsts = await self._expiring(tags, 0)
        excess = sum(total for total, _ in firsts) - most
        free: list[_Candidate] = []
        for tag, (total, page) in zip(tags, firsts, strict=True):
            free_here, seen = await self._free(page), len(page)
            while seen < total and page and (page[-1].moment <= now or len(free_here) < excess):
                ((total, page),) = await self._expiring([tag], seen)
                free_here, seen = free_here + await self._free(page), seen + len(page)
            free += free_here
        free.sort(key=lambda each: each.moment)
        expired = sum(each.moment <= now for each in free)
        return await self._delete(free[: max(expired, excess)])

    async def _delete(self, unwanted: Sequence[_Candidate]) -> int:
        gone = 0
        for chunk in _chunks(unwanted):
            calls = [
                ScriptCall(FORGET, [session_name(tag, session_id)], [tag, session_id, "", "", holder])
                for tag, session_id, _, holder in chunk
            ]
            gone += sum(await self._ask(calls))
        return gone

    async def _expiring(self, tags: Sequence[str], first: int) -> list[tuple[int, list[_Candidate]]]:
        """Return the number of sessions in each partition, and one page of them."""
        replies = await self._ask(
            [ScriptCall(EXPIRY, [f"{tag}:expiry"], [tag, first, first + AT_ONCE - 1]) for tag in tags]
        )
        return [
            (int(reply[0]), [_Candidate(tag, *_read(row)) for row in _in_turn(reply[1:], 3)])
            for tag, reply in zip(tags, replies, strict=True)
        ]

    async def _candidates(self, calls: Sequence[ScriptCall]) -> list[_Candidate]:
        replies = await self._ask(calls)
        tags = [call.keys[0].removesuffix(":owners") for call in calls]
        return [
            _Candidate(tag, *_read(row))
            for tag, reply in zip(tags, replies, strict=True)
            for row in _in_turn(reply or [], 3)
        ]

    async def _free(self, found: Sequence[_Candidate]) -> list[_Candidate]:
        """Return the sessions that no live process holds."""
        owners = {each.owner for each in found if each.owner}
        if not owners:
            return list(found)
        roster = await self._roster(owners)
        return [each for each in found if self._is_free(each.owner, roster)]

    def _is_free(self, owner: str, roster: Roster) -> bool:
        if not owner or epoch_of(owner) == self._lease.epoch:
            return not owner
        return not roster.is_alive(owner) and self._lease.may_take_over

    async def _refuse_if_held(self, owner: str) -> None:
        roster = await self._roster([owner])
        if not self._is_free(owner, roster):
            raise HeldElsewhere(_HELD, roster.holder(owner))

    async def _release_strays(self) -> None:
        """Release sessions whose take succeeded but whose reply was lost. Otherwise their timers would never fire."""
        calls = [ScriptCall(DUE, [f"{tag}:owners"], [tag, "+inf", MOST_STRAYS]) for tag in self._names.tags]
        strays = [
            each
            for each in await self._candidates(calls)
            if each.owner and epoch_of(each.owner) == self._lease.epoch and each.session_id not in self._held_sessions
        ]
        for each in strays:
            self._held_sessions.add(each.session_id, each.tag, int(each.holder.rpartition("/")[2]))
        await self.release({each.session_id: Lease(int(each.holder.rpartition("/")[2]), 0) for each in strays})
        self._held_sessions.may_have_lost_track = False

    def _taken(self, tag: str, reply: Sequence[Any]) -> StoredSession:
        session = read_session(reply[0].decode(), reply[2])
        self._unconfirmed_commits.settle(session.head.session_id)
        self._held_sessions.add(session.head.session_id, tag, session.lease.fence)
        return session

    async def _roster(self, owners: Collection[str]) -> Roster:
        """Return the roster for these owners only, because there may be a thousand other replicas."""
        try:
            return await self._lease.roster(owners)
        except UnknownOutcome as error:
            raise error.because from None

    async def _ask(self, calls: Sequence[ScriptCall]) -> list[Any]:
        try:
            return await self._commands.run_all(calls)
        except UnknownOutcome as error:
            raise error.because from None

    @contextmanager
    def _keeping_track(self) -> Iterator[None]:
        try:
            yield
        except UnknownOutcome as error:
            self._held_sessions.may_have_lost_track = True
            raise error.because from None
        except BaseException:
            self._held_sessions.may_have_lost_track = True
            raise


def _read(row: Sequence[bytes]) -> tuple[str, datetime, str]:
    session_id, moment, holder = row
    return session_id.decode(), read_moment(moment), holder.decode()


def _in_turn(flat: Sequence[bytes], size: int) -> Iterable[Sequence[bytes]]:
    return (flat[start : start + size] for start in range(0, len(flat), size))


def _chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))


class Chunks:
    """Chunks of the sessions that this process holds, in one hash per session. It is deleted with its session.

    Raises: StoreUnavailable.
    """

    def __init__(self, commands: Commands, names: KeyNames, held_sessions: HeldSessions) -> None:
        self._commands, self._names, self._held_sessions = commands, names, held_sessions

    async def put(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        if (tag := self._tag_of(session_id)) is None:
            return False
        words: list[Word] = [
            word for number, chunk in enumerate(chunks, first) for word in (_field(name, number), chunk)
        ]
        keys = [session_name(tag, session_id), chunks_name(tag, session_id)]
        return bool(await run_script(self._commands, PUT_CHUNKS, keys, *words))

    async def read(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        if (tag := self._tag_of(session_id)) is None:
            return []
        fields = [_field(name, number) for number in range(first, first + count)]
        found = await run_command(self._commands, "HMGET", chunks_name(tag, session_id), *fields)
        return found[: found.index(None)] if None in found else list(found)

    async def drop(self, session_id: str, name: str, count: int) -> None:
        if (tag := self._tag_of(session_id)) is None:
            return
        for first in range(0, count, DROPPED_AT_ONCE):
            fields = [_field(name, number) for number in range(first, min(first + DROPPED_AT_ONCE, count))]
            await run_command(self._commands, "HDEL", chunks_name(tag, session_id), *fields)

    def _tag_of(self, session_id: str) -> str | None:
        return self._held_sessions.tag_of(session_id) or (None if self._commands.is_spread else self._names.tags[0])


def _field(name: str, number: int) -> str:
    return f"{name}:{number}"
