// The live feed: keeps one stream open, and hands what it tells to the store.

import { toLogin } from "./console-api.js";
import { Backoff } from "./backoff.js";
import { adjustTo } from "../state/server-clock.js";
import { restWhenHidden, untilVisible } from "./tab-visibility.js";
import { RowLog } from "../state/request-log.js";
import { isEventStream, readEvents } from "./sse.js";
import { list } from "../state/store.js";

const SETTLED_MS = 5000; // a feed that ends sooner is not well, and is not asked for again at once
const SILENCE_MS = 40_000; // the server pings every 15 s: after two missed pings the line is dead

export class Feed {
  #store;
  #incoming = null;
  #backoff = new Backoff();
  #line = null;
  #isResting = false;
  #liveSince = Infinity;

  constructor(store) {
    this.#store = store;
    restWhenHidden(() => {
      this.#isResting = true;
      this.#line?.abort();
    });
  }

  async run() {
    for (;;) {
      this.#store.setFeed(this.#store.isReady && !this.#isResting ? "lost" : "connecting");
      this.#isResting = false;
      await this.#follow();
      this.#incoming = null;
      if (this.#isResting) {
        await untilVisible();
        continue;
      }
      // The server ends every feed now and then; whoever comes back at once misses nothing.
      if (Date.now() - this.#liveSince > SETTLED_MS) {
        this.#liveSince = Infinity;
        continue;
      }
      this.#store.setFeed("lost", Date.now() + this.#backoff.delay);
      await this.#backoff.wait();
    }
  }

  async #follow() {
    const line = (this.#line = new AbortController());
    const watchdog = new Watchdog(() => line.abort());
    try {
      const headers = { accept: "text/event-stream" };
      const response = await fetch("/console/feed", { headers, cache: "no-store", signal: line.signal });
      if (response.status === 401) toLogin();
      if (!response.ok || !isEventStream(response)) return;
      await readEvents(
        response,
        (message) => this.#hear(message),
        () => watchdog.feed(),
      );
    } catch {
      // A lost line is what the loop around is for.
    } finally {
      watchdog.stop();
      line.abort();
    }
  }

  #hear({ event, data }) {
    let value;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    if (event === "hello") this.#begin(value);
    else if (event === "ready") this.#complete();
    else if (typeof value !== "object" || value === null) return;
    else if (this.#incoming) stage(this.#incoming, event, value);
    else apply(this.#store, event, value);
  }

  #begin(hello) {
    adjustTo(hello.now);
    this.#incoming = { hello, sessions: new Map(), rows: new RowLog(), events: [], logs: [] };
  }

  #complete() {
    if (this.#incoming) this.#store.replaceAll(this.#incoming);
    this.#incoming = null;
    this.#backoff.reset();
    this.#liveSince = Date.now();
    this.#store.setFeed("live");
  }
}

function stage(incoming, event, value) {
  if (event === "session") incoming.sessions.set(value.id, value);
  else if (event === "session_gone") incoming.sessions.delete(value.id);
  else if (event === "requests") incoming.rows.put(list(value.rows));
  else if (event === "events") incoming.events = incoming.events.concat(list(value.events));
  else if (event === "logs") incoming.logs = incoming.logs.concat(list(value.logs));
}

function apply(store, event, value) {
  if (event === "session") store.putSession(value);
  else if (event === "session_gone") store.dropSession(value.id);
  else if (event === "requests") store.putRows(list(value.rows));
  else if (event === "events") store.addEvents(list(value.events));
  else if (event === "logs") store.addLogs(list(value.logs));
}

class Watchdog {
  #timer;

  constructor(onSilence) {
    this.onSilence = onSilence;
    this.feed();
  }

  feed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.onSilence, SILENCE_MS);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
