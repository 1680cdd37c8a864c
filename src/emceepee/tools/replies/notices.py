"""Additions to a result in a reply: events since the last reply, and open questions and tasks."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from emceepee.sessions.events.buffers import cut
from emceepee.sessions.session import Session
from emceepee.sessions.views import event_view, question_details, question_summary
from emceepee.state.events import Delivery, DeliveryReceipt, Event, EventType
from emceepee.state.question import Question, QuestionKind
from emceepee.surface import call_to
from emceepee.tools.declaration.declaration import NO_MENTIONS, Mentions
from emceepee.wire.codec import encode, encode_text
from emceepee.wire.json_types import JsonObject

MOST_QUESTIONS = 5  # of each kind; for the rest, a notice has their number and the tool that lists them
EVENT_NOTICE_BYTES = 2048  # a larger event is cut in a notice; `await_activity` returns it whole
DETAILS_BYTES = 4096  # for the forms and messages of all questions in a reply together
SMALL_VALUE_BYTES = 200  # a value of an event that stays whole when its neighbors are cut
BEFORE_ALL = "0"  # no event has this id, so a request for later events returns all stored events
EVENTS, PENDING, MOVED = "events_since_last_response", "pending_client_action", "session_moved"
UNSAVED = "state_not_saved"
# The first line of a notice block. Some clients, such as mcporter, print the JSON blocks of a reply: a block of only
# JSON would look like the result.
INTRODUCTIONS = {
    EVENTS: "Since the last reply:",
    PENDING: "Waiting for an answer:",
    MOVED: "The session moved:",
    UNSAVED: "Not saved:",
}
NOTICE_KEYS = frozenset({EVENTS, "more", "events_dropped", PENDING, MOVED, UNSAVED})
_NOTICE_STARTS = tuple(f'{{"{key}"' for key in INTRODUCTIONS)
NOTHING_UNREAD: Mapping[str, float] = {}
_QUESTION_EVENTS = (EventType.ELICITATION_REQUEST, EventType.SAMPLING_REQUEST)
_CONNECT_EVENTS = (EventType.PROCESS_STARTED, EventType.SERVER_CONNECTED)
_TASK_ENDS = (EventType.TASK_COMPLETED, EventType.TASK_FAILED, EventType.TASK_CANCELLED, EventType.TASK_EXPIRED)
_LISTERS = {QuestionKind.ELICITATION: "get_elicitations", QuestionKind.SAMPLING: "get_sampling_requests"}
_PENDING_KEYS = {QuestionKind.ELICITATION: "elicitations", QuestionKind.SAMPLING: "sampling_requests"}


@dataclass(frozen=True, slots=True)
class Digest:
    """The events in a reply. `count` is how many events it covers: listed, merged, or mentioned by the result."""

    entries: list[JsonObject]
    count: int


@dataclass(frozen=True, slots=True)
class Notices:
    """The notices in a reply: one object per block for models, and one object with all of them for programs."""

    blocks: list[JsonObject]
    structured: JsonObject
    receipt: DeliveryReceipt  # of its events, to redeliver them if the reply is not read


def notice_text(notice: JsonObject) -> str:
    """Return the text of a notice block: an introductory line, then the notice as one line of JSON."""
    return f"{INTRODUCTIONS[next(iter(notice))]}\n{encode_text(notice)}"


def read_notice(text: str) -> JsonObject | None:
    """Return the notice in the text of a block, with or without its introductory line, or None if it has none."""
    words, _, line = text.rpartition("\n")
    if not line.startswith(_NOTICE_STARTS) or (words and words not in INTRODUCTIONS.values()):
        return None
    try:
        notice = json.loads(line)
    except ValueError:
        return None
    return notice if isinstance(notice, dict) and notice and notice.keys() <= NOTICE_KEYS else None


def take_notices(session: Session, mentions: Mentions = NO_MENTIONS, *, conversation: object | None = None) -> Notices:
    """Return the notices for a reply. Listed events count as delivered once the reply is read.

    `mentions` are the facts that the result already states. The blocks, which models read, omit these facts. The
    structured notices contain every event.
    """
    found, room = session.activity.undelivered(), session.limits.notice_bytes
    digest = digest_events(found, room=room, event_room=EVENT_NOTICE_BYTES, mentions=mentions)
    receipt = session.activity.deliver(found, digest.count)
    blocks: list[JsonObject] = []
    structured: JsonObject = {}
    if digest.entries or found.dropped:
        rest = leftovers(found, digest)
        structured |= {EVENTS: digest.entries} | rest
        in_words = [entry for entry in digest.entries if not _is_said_in_words(entry, mentions)]
        if in_words or rest:
            blocks.append({EVENTS: in_words} | rest)
    if session.questions.is_any_open:
        new = new_questions(found, digest) - mentions.questions
        own, others = split_questions(session, session.questions.open(), conversation)
        unread = session.questions.take_unread_dismissals(own)
        pending = pending_client(own, others=others, detailed=new, unread=unread)
        blocks.append({PENDING: pending})
        structured[PENDING] = pending
    return Notices(blocks, structured, receipt)


def digest_events(
    found: Delivery,
    *,
    room: int,
    event_room: int | None = None,
    mentions: Mentions = NO_MENTIONS,
    hidden: Collection[str] = (),
) -> Digest:
    """Return as many events as fit into `room` bytes, and at least one. Equal notifications become one entry.

    With `event_room`, larger events are cut, and questions are announced without their content. Without it, all events
    are whole except `hidden` questions.
    """
    entries: dict[object, JsonObject] = {}
    used, count, before = 0, 0, found.before or BEFORE_ALL
    for event in found.events:
        if mentions.ended_task is None or not _tells_end_of(event, mentions.ended_task):
            key = _sameness(event)
            earlier = entries.get(key)
            entry = _entry(event, before, event_room, hidden) if earlier is None else _merged(earlier, event)
            size = len(encode(entry)) + 1 - (0 if earlier is None else len(encode(earlier)) + 1)
            if entries and used + size > room:
                break
            entries.pop(key, None)  # a merged entry takes the position of its last event
            entries[key] = entry
            used += size
        count, before = count + 1, event.event_id
    return Digest(list(entries.values()), count)


def leftovers(found: Delivery, digest: Digest) -> JsonObject:
    """Return how many events wait for the next reply and how many were lost. Zero counts are omitted."""
    more = len(found.events) - digest.count
    return ({"more": more} if more else {}) | ({"events_dropped": found.dropped} if found.dropped else {})


def new_questions(found: Delivery, digest: Digest) -> frozenset[str]:
    """Return the ids of the questions that this reply announces for the first time."""
    announced = (event for event in found.events[: digest.count] if event.type in _QUESTION_EVENTS)
    return frozenset(str(event.data.get("requestId")) for event in announced)


def split_questions(
    session: Session, questions: Iterable[Question], conversation: object | None
) -> tuple[list[Question], list[Question]]:
    """Split the questions: shown to this conversation in full, or belonging to others in the same session."""
    own: list[Question] = []
    others: list[Question] = []
    for question in questions:
        (own if session.questions.is_seen_in(question, conversation) else others).append(question)
    return own, others


def pending_client(
    asked: Iterable[Question],
    *,
    others: Collection[Question] = (),
    detailed: Collection[str] = (),
    bare: Collection[str] = (),
    unread: Mapping[str, float] = NOTHING_UNREAD,
) -> JsonObject:
    """Return a summary of each open question.

    Questions in `detailed` include the form or the messages, and questions in `bare` omit their message. Questions of
    another conversation, `others`, are only counted.
    """
    by_kind: dict[QuestionKind, list[Question]] = {kind: [] for kind in QuestionKind}
    for question in asked:
        by_kind[question.kind].append(question)
    room = DETAILS_BYTES
    shown: JsonObject = {}
    more: JsonObject = {}
    for kind, of_kind in by_kind.items():
        entries: list[JsonObject] = []
        for question in of_kind[:MOST_QUESTIONS]:
            entry = cast(JsonObject, question_summary(question))
            if question.request_id in bare:
                entry.pop("message", None)
            elif question.request_id in detailed:
                details = question_details(question)
                size = len(encode(details))
                fits = size <= room
                entry = (
                    details | entry
                    if fits
                    else entry | {"whole": f"{call_to(_LISTERS[kind])} shows the whole question"}
                )
                room -= size if fits else 0
            if question.request_id in unread:
                entry["note"] = unread_note(unread[question.request_id])
            entries.append(entry)
        shown[_PENDING_KEYS[kind]] = entries
        uncounted = [f"{len(of_kind) - MOST_QUESTIONS} more"] if len(of_kind) > MOST_QUESTIONS else []
        if elsewhere := sum(question.kind is kind for question in others):
            uncounted.append(f"{elsewhere} of another conversation")
        if uncounted:
            more[_PENDING_KEYS[kind]] = f"{' and '.join(uncounted)}: {call_to(_LISTERS[kind])} lists them"
    return shown | ({"more": more} if more else {})


def unread_note(seconds: float) -> str:
    return (
        f"The client dismissed this after {max(0, round(seconds * 1000))} ms, before anyone can have read it, so it "
        "is still open. This client is not asked again in this session."
    )


def _sameness(event: Event) -> object:
    """Return a key that is equal only for notifications with the same content."""
    if event.type is not EventType.NOTIFICATION:
        return event.event_id
    return event.server, event.data.get("method"), encode(event.data.get("params"))


def _merged(entry: JsonObject, event: Event) -> JsonObject:
    """Merge an equal event into its entry, which then has the id and time of the last one."""
    data = entry["data"] | {"timestamp": event.data.get("timestamp")}
    merged = entry | {"id": event.event_id, "createdAt": event_view(event)["createdAt"], "data": data}
    return merged | {"firstId": entry.get("firstId", entry["id"]), "count": entry.get("count", 1) + 1}


def _entry(event: Event, before: str, room: int | None, hidden: Collection[str]) -> JsonObject:
    view = cast(JsonObject, event_view(event))
    if event.type in _QUESTION_EVENTS and (room is not None or event.data.get("requestId") in hidden):
        view["data"] = {key: value for key, value in event.data.items() if key != "params"}
    if room is None:
        return view
    size = len(encode(view))
    if size <= room:
        return view
    return view | {
        "data": _cut_values(event.data, room),
        "cut": f"{size} bytes in all; {call_to('await_activity')} with last_event_id={before} returns it whole",
    }


def _cut_values(data: JsonObject, room: int) -> JsonObject:
    """Cut large values so that they share the room. Small values stay whole."""
    large = [key for key, value in data.items() if len(encode(value)) > SMALL_VALUE_BYTES]
    share = room // (2 * len(large)) if large else 0  # half of the room, because escaped quotes take two bytes
    return {key: cut(value, share) if key in large else value for key, value in data.items()}


def _is_said_in_words(entry: JsonObject, mentions: Mentions) -> bool:
    if entry["type"] == EventType.TASK_CREATED:
        return bool(entry["data"].get("taskId") == mentions.created_task)
    if entry["type"] in _CONNECT_EVENTS:
        return bool(entry["server"] == mentions.server)
    return entry["type"] in _QUESTION_EVENTS and entry["data"].get("requestId") in mentions.questions


def _tells_end_of(event: Event, task_id: str) -> bool:
    return event.type in _TASK_ENDS and event.data.get("taskId") == task_id
