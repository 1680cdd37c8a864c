// Everything the feed told, and who wants to hear of changes. Views are told at most once per animation frame.

import { RowLog } from "./request-log.js";

const HIDDEN_MS = 250; // animation frames do not come while the page is hidden, but its title still counts
const MOST_EVENTS = 10_000;
const MOST_LOGS = 10_000;

export class Store {
  sessions = new Map();
  rows = new RowLog();
  events = [];
  logs = [];
  hello = null;
  isReady = false;
  sessionsRevision = 0;
  feed = { status: "connecting", retryAt: null };
  #labels = new Map();
  #listeners = new Set();
  #changed = new Set();
  #isScheduled = false;

  /** `listener(topics)` with a Set of what changed: feed, sessions, rows, events, logs. */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  touch(topic) {
    this.#changed.add(topic);
    if (topic === "sessions") this.sessionsRevision += 1;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    if (document.hidden) setTimeout(() => this.#flush(), HIDDEN_MS);
    else whenPainted(() => this.#flush());
  }

  #flush() {
    this.#isScheduled = false;
    const topics = this.#changed;
    this.#changed = new Set();
    for (const listener of this.#listeners) listener(topics);
  }

  setFeed(status, retryAt = null) {
    this.feed = { status, retryAt };
    this.touch("feed");
  }

  /** A reconnect sends all again: the old picture stands until the new one is complete, then gives way at once. */
  replaceAll({ hello, sessions, rows, events, logs }) {
    events.sort(byTime);
    logs.sort(byTime);
    Object.assign(this, { hello, sessions, rows, events, logs, isReady: true });
    for (const session of sessions.values()) this.#labels.set(session.id, session.label);
    for (const topic of ["feed", "sessions", "rows", "events", "logs"]) this.touch(topic);
  }

  putSession(session) {
    this.sessions.set(session.id, session);
    this.#labels.set(session.id, session.label);
    this.touch("sessions");
  }

  dropSession(id) {
    this.sessions.delete(id);
    this.touch("sessions");
  }

  putRows(rows) {
    this.rows.put(rows);
    this.touch("rows");
  }

  addEvents(events) {
    this.events = latest(this.events, events, MOST_EVENTS);
    this.touch("events");
  }

  addLogs(logs) {
    this.logs = latest(this.logs, logs, MOST_LOGS);
    this.touch("logs");
  }

  /** What the caller of a session calls itself, also after the session has gone; undefined if it was never seen. */
  labelOf(sessionId) {
    return this.#labels.get(sessionId);
  }

  questions() {
    return [...this.sessions.values()]
      .flatMap((session) => list(session.questions).map((question) => ({ session: session.id, question })))
      .sort((a, b) => (a.question.timestamp < b.question.timestamp ? -1 : 1));
  }

  findTask(taskId) {
    for (const session of this.sessions.values()) {
      const task = list(session.tasks).find((each) => each.taskId === taskId);
      if (task) return { session: session.id, task };
    }
    return null;
  }
}

/** An animation frame, or soon after if the browser withholds frames from a page that nobody can see. */
function whenPainted(callback) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    callback();
  };
  requestAnimationFrame(once);
  setTimeout(once, HIDDEN_MS);
}

export const list = (value) => (Array.isArray(value) ? value : []);

/** Each session tells what happened in it by itself; people read it in one line of time. */
function byTime(one, other) {
  const [first, second] = [one, other].map((item) => item.createdAt ?? item.timestamp ?? "");
  return first < second ? -1 : first > second ? 1 : 0;
}

function latest(old, added, most) {
  const all = old.concat(added).sort(byTime);
  return all.length > most ? all.slice(all.length - most) : all;
}
