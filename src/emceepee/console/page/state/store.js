// All data of the feed, and the subscribers to its changes. Views are notified at most once per animation frame.

import { asArray } from "../lib/safe-json.js";
import { RequestLog } from "./request-log.js";

/**
 * @typedef {"feed" | "sessions" | "rows" | "events" | "logs"} Topic
 * @typedef {Set<Topic>} Topics What changed.
 * @typedef {{ session: string, question: Wire.Question }} QuestionEntry
 */
/**
 * All data that a new feed sends before it is live.
 * @typedef {object} Snapshot
 * @property {Wire.Hello} hello
 * @property {Map<string, Wire.Session>} sessions
 * @property {RequestLog} rows
 * @property {Wire.SessionEvent[]} events
 * @property {Wire.Log[]} logs
 */

const FALLBACK_FLUSH_MS = 250; // animation frames pause while the page is hidden, but its title must still be updated
const MAX_EVENTS = 10_000;
const MAX_LOGS = 10_000;

/** @type {Topic[]} */
const ALL_TOPICS = ["feed", "sessions", "rows", "events", "logs"];

export class Store {
  /** @type {Map<string, Wire.Session>} */
  sessions = new Map();
  rows = new RequestLog();
  /** @type {Wire.SessionEvent[]} */
  events = [];
  /** @type {Wire.Log[]} */
  logs = [];
  /** @type {Wire.Hello | null} */
  hello = null;
  isReady = false;
  sessionsRevision = 0;
  /** @type {{ status: "connecting" | "live" | "lost", retryAt: number | null }} */
  feed = { status: "connecting", retryAt: null };
  /** @type {Map<string, string | null | undefined>} */
  #labels = new Map();
  /** @type {Set<(topics: Topics) => void>} */
  #listeners = new Set();
  /** @type {Topics} */
  #changed = new Set();
  #isScheduled = false;

  /** @param {(topics: Topics) => void} listener */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  /** @param {Topic} topic */
  markChanged(topic) {
    this.#changed.add(topic);
    if (topic === "sessions") this.sessionsRevision += 1;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    if (document.hidden) setTimeout(() => this.#flush(), FALLBACK_FLUSH_MS);
    else onNextFrame(() => this.#flush());
  }

  #flush() {
    this.#isScheduled = false;
    const topics = this.#changed;
    this.#changed = new Set();
    for (const listener of this.#listeners) listener(topics);
  }

  /**
   * @param {"connecting" | "live" | "lost"} status
   * @param {number | null} [retryAt]
   */
  setFeed(status, retryAt = null) {
    this.feed = { status, retryAt };
    this.markChanged("feed");
  }

  /**
   * A reconnect sends all data again. The old data stays visible until the new data is complete, and is then replaced
   * at once.
   * @param {Snapshot} snapshot
   */
  replaceAll({ hello, sessions, rows, events, logs }) {
    logs.sort(byTime);
    this.hello = hello;
    this.sessions = sessions;
    this.rows = rows;
    this.events = withoutRepeats([], events).sort(byTime);
    this.logs = logs;
    this.isReady = true;
    for (const session of sessions.values()) this.#labels.set(session.id, session.label);
    for (const topic of ALL_TOPICS) this.markChanged(topic);
  }

  /** @param {Wire.Session} session */
  putSession(session) {
    this.sessions.set(session.id, session);
    this.#labels.set(session.id, session.label);
    this.markChanged("sessions");
  }

  /** @param {string} id */
  removeSession(id) {
    this.sessions.delete(id);
    this.markChanged("sessions");
  }

  /** @param {Wire.RequestRow[]} rows */
  putRows(rows) {
    this.rows.put(rows);
    this.markChanged("rows");
  }

  /** @param {Wire.SessionEvent[]} events */
  addEvents(events) {
    this.events = appendNewest(this.events, withoutRepeats(this.events, events), MAX_EVENTS);
    this.markChanged("events");
  }

  /** @param {Wire.Log[]} logs */
  addLogs(logs) {
    this.logs = appendNewest(this.logs, logs, MAX_LOGS);
    this.markChanged("logs");
  }

  /**
   * The name of a session's caller, even after the session has ended; undefined if it was never seen.
   * @param {string} sessionId
   */
  labelOf(sessionId) {
    return this.#labels.get(sessionId);
  }

  /** @returns {QuestionEntry[]} */
  questions() {
    return [...this.sessions.values()]
      .flatMap((session) => asArray(session.questions).map((question) => ({ session: session.id, question })))
      .sort((a, b) => (a.question.timestamp < b.question.timestamp ? -1 : 1));
  }

  /**
   * @param {string} taskId
   * @returns {{ session: string, task: Wire.Task } | null}
   */
  findTask(taskId) {
    for (const session of this.sessions.values()) {
      const task = asArray(session.tasks).find((each) => each.taskId === taskId);
      if (task) return { session: session.id, task };
    }
    return null;
  }
}

/**
 * An animation frame, or a timer if the browser withholds frames from a hidden page.
 * @param {() => void} callback
 */
function onNextFrame(callback) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    callback();
  };
  requestAnimationFrame(once);
  setTimeout(once, FALLBACK_FLUSH_MS);
}

/**
 * Each session reports its own events; people read them on a single timeline.
 * @param {{ createdAt?: string, timestamp?: string }} one
 * @param {{ createdAt?: string, timestamp?: string }} other
 */
function byTime(one, other) {
  const [first, second] = [one, other].map((item) => item.createdAt ?? item.timestamp ?? "");
  return first < second ? -1 : first > second ? 1 : 0;
}

/**
 * A replica that takes over a session sends all its events, and the page may already have some of them.
 * @param {Wire.SessionEvent[]} old
 * @param {Wire.SessionEvent[]} added
 */
function withoutRepeats(old, added) {
  const known = new Set(old.map((event) => event.id));
  return added.filter(({ id }) => !known.has(id) && known.add(id));
}

/**
 * @template {Wire.SessionEvent | Wire.Log} Entry
 * @param {Entry[]} old
 * @param {Entry[]} added
 * @param {number} max
 */
function appendNewest(old, added, max) {
  const all = old.concat(added).sort(byTime);
  return all.length > max ? all.slice(all.length - max) : all;
}
