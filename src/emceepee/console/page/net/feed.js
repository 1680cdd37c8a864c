// The live feed: keeps one stream open and passes its messages to the store.

import { asArray } from "../lib/safe-json.js";
import { RequestLog } from "../state/request-log.js";
import { synchronize } from "../state/server-clock.js";
import { Backoff } from "./backoff.js";
import { redirectToLogin } from "./console-api.js";
import { isEventStream, readEvents } from "./sse.js";
import { suspendWhenHidden, untilVisible } from "./tab-visibility.js";

/**
 * @import { Snapshot, Store } from "../state/store.js"
 */

const STABLE_AFTER_MS = 5000; // a feed that ends sooner is considered broken, and is not reopened at once
const SILENCE_LIMIT_MS = 40_000; // the server pings every 15 s: after two missed pings the connection is dead

export class Feed {
  #store;
  /** @type {Snapshot | null} */
  #snapshot = null;
  #backoff = new Backoff();
  /** @type {AbortController | null} */
  #connection = null;
  #isSuspended = false;
  #liveSince = Infinity;

  /** @param {Store} store */
  constructor(store) {
    this.#store = store;
    suspendWhenHidden(() => {
      this.#isSuspended = true;
      this.#connection?.abort();
    });
  }

  async run() {
    for (;;) {
      this.#store.setFeed(this.#store.isReady && !this.#isSuspended ? "lost" : "connecting");
      this.#isSuspended = false;
      await this.#readStream();
      this.#snapshot = null;
      if (this.#isSuspended) {
        await untilVisible();
        continue;
      }
      // The server ends every feed periodically. A page that reconnects at once misses nothing.
      if (Date.now() - this.#liveSince > STABLE_AFTER_MS) {
        this.#liveSince = Infinity;
        continue;
      }
      this.#store.setFeed("lost", Date.now() + this.#backoff.delay);
      await this.#backoff.wait();
    }
  }

  async #readStream() {
    const connection = (this.#connection = new AbortController());
    const watchdog = new Watchdog(() => connection.abort());
    try {
      const headers = { accept: "text/event-stream" };
      const response = await fetch("/console/feed", { headers, cache: "no-store", signal: connection.signal });
      if (response.status === 401) redirectToLogin();
      if (!response.ok || !isEventStream(response)) return;
      await readEvents(
        response,
        (message) => this.#handle(message),
        () => watchdog.reset(),
      );
    } catch {
      // The surrounding loop handles a lost connection.
    } finally {
      watchdog.stop();
      connection.abort();
    }
  }

  /** @param {import("./sse.js").SseEvent} message */
  #handle({ event, data }) {
    let value;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    if (event === "hello") this.#beginSnapshot(value);
    else if (event === "ready") this.#completeSnapshot();
    else if (typeof value !== "object" || value === null) return;
    else if (this.#snapshot) addToSnapshot(this.#snapshot, event, value);
    else applyToStore(this.#store, event, value);
  }

  /** @param {Wire.Hello} hello */
  #beginSnapshot(hello) {
    synchronize(hello.now);
    this.#snapshot = { hello, sessions: new Map(), rows: new RequestLog(), events: [], logs: [] };
  }

  #completeSnapshot() {
    if (this.#snapshot) this.#store.replaceAll(this.#snapshot);
    this.#snapshot = null;
    this.#backoff.reset();
    this.#liveSince = Date.now();
    this.#store.setFeed("live");
  }
}

/**
 * @param {Snapshot} snapshot
 * @param {string} event
 * @param {any} value
 */
function addToSnapshot(snapshot, event, value) {
  if (event === "session") snapshot.sessions.set(value.id, value);
  else if (event === "session_gone") snapshot.sessions.delete(value.id);
  else if (event === "requests") snapshot.rows.put(asArray(value.rows));
  else if (event === "events") snapshot.events = snapshot.events.concat(asArray(value.events));
  else if (event === "logs") snapshot.logs = snapshot.logs.concat(asArray(value.logs));
}

/**
 * @param {Store} store
 * @param {string} event
 * @param {any} value
 */
function applyToStore(store, event, value) {
  if (event === "session") store.putSession(value);
  else if (event === "session_gone") store.removeSession(value.id);
  else if (event === "requests") store.putRows(asArray(value.rows));
  else if (event === "events") store.addEvents(asArray(value.events));
  else if (event === "logs") store.addLogs(asArray(value.logs));
}

class Watchdog {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {() => void} onSilence */
  constructor(onSilence) {
    this.onSilence = onSilence;
    this.reset();
  }

  reset() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.onSilence, SILENCE_LIMIT_MS);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
