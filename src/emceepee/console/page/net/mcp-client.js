// An MCP client over Streamable HTTP. A request is sent once; a cut stream is taken up where it was cut.

import { toLogin } from "./console-api.js";
import { Backoff } from "./backoff.js";
import { load, save } from "./session-storage.js";
import { isEventStream, readEvents } from "./sse.js";
import { MCP } from "./tab-claim.js";

const VERSION = "2025-11-25";
const ADDRESS = "/mcp";

/** The session ended: nothing that ran in it can be asked for any more. */
export class SessionGone extends Error {}
/** The request may have arrived, but its answer cannot be read: no event id was seen, or it is forgotten. */
export class Unreadable extends Error {}
/** emceepee answered with a JSON-RPC error, or did not take the request. */
export class Refused extends Error {}

export class McpClient {
  state = "idle";
  #kept = { sessionId: null, nextId: 1 };
  #opening = null;
  #resuming = 0;

  constructor({ nonce, onState, onSessionGone }) {
    Object.assign(this, { nonce, onState, onSessionGone });
    this.#kept = load(MCP, this.#kept);
    if (this.#kept.sessionId) this.#setState("open");
  }

  get hasSession() {
    return Boolean(this.#kept.sessionId);
  }

  /** An id never used before in this session, remembered before it is used. */
  takeId() {
    const id = this.#kept.nextId;
    this.#keep({ nextId: id + 1 });
    return id;
  }

  /**
   * The result. `hooks`: `onEventId`, `onProgress`. A request that `staysInSession` makes no sense in another one.
   * Raises: SessionGone, Unreadable, Refused.
   */
  async request(method, params, { id = this.takeId(), staysInSession = false, ...hooks } = {}) {
    try {
      await this.open();
    } catch (error) {
      throw error instanceof Unreadable ? new Refused("emceepee could not be reached, so nothing was sent.") : error;
    }
    const message = { jsonrpc: "2.0", id, method, params };
    const response = await this.#post(message).catch(async (error) => {
      if (!(error instanceof SessionGone) || staysInSession) throw error;
      // Refused before anything was done: to ask the new session is not to ask twice.
      await this.open();
      return this.#post(message);
    });
    return resultOf(await this.#reply(response, id, hooks));
  }

  /** The result of a request that was sent before a reload. */
  async resume(id, lastEventId, hooks) {
    return resultOf(await this.#takenUp(id, lastEventId, hooks));
  }

  async notify(method, params) {
    if (!this.hasSession) return;
    await this.#post({ jsonrpc: "2.0", method, params }).catch(() => {});
  }

  // The session.

  open() {
    if (this.hasSession && !this.#opening) return Promise.resolve();
    this.#opening ??= this.#initialize().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #initialize() {
    const params = {
      protocolVersion: VERSION,
      capabilities: {},
      clientInfo: { name: "emceepee-console", version: this.nonce },
    };
    const id = this.takeId();
    const response = await this.#post(
      { jsonrpc: "2.0", id, method: "initialize", params },
      { "Emceepee-Connect": "on-use" },
    );
    const sessionId = response.headers.get("mcp-session-id");
    const reply = await this.#reply(response, id, {});
    if (!sessionId) throw new Refused("emceepee opened no session.");
    resultOf(reply);
    this.#keep({ sessionId });
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    this.#setState("open");
  }

  #gone(sessionId, refusedId) {
    if (sessionId === this.#kept.sessionId) {
      this.#keep({ sessionId: null });
      this.#setState("lost");
      // One that ended while it was being opened had nothing running in it.
      if (!this.#opening) this.onSessionGone(refusedId);
      this.open().catch(() => {});
    }
    throw new SessionGone("The session of this page had ended.");
  }

  #keep(change) {
    Object.assign(this.#kept, change);
    save(MCP, this.#kept);
  }

  #setState(state) {
    this.state = state;
    this.onState(this.#resuming > 0 && state === "open" ? "resuming" : state);
  }

  /** While `work` runs, the page says that it is catching up. */
  async catchingUp(work) {
    this.#resuming += 1;
    this.#setState(this.state);
    try {
      return await work();
    } finally {
      this.#resuming -= 1;
      this.#setState(this.state);
    }
  }

  // One request.

  async #post(message, headers) {
    const sessionId = this.#kept.sessionId;
    let response;
    try {
      response = await fetch(ADDRESS, {
        method: "POST",
        headers: {
          ...this.#headers(),
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
        },
        body: JSON.stringify(message),
      });
    } catch {
      throw new Unreadable("The line to emceepee was cut.");
    }
    if (response.status === 401) toLogin();
    if (response.status === 404 && sessionId) this.#gone(sessionId, message.id);
    if (!response.ok) throw new Refused(await refusalOf(response));
    return response;
  }

  #headers() {
    const { sessionId } = this.#kept;
    return sessionId ? { "mcp-session-id": sessionId, "mcp-protocol-version": VERSION } : {};
  }

  async #reply(response, id, hooks) {
    if (isEventStream(response)) {
      const seen = await this.#listen(response, id, hooks);
      return seen.reply ?? this.#takenUp(id, seen.lastEventId, hooks);
    }
    try {
      return await response.json();
    } catch {
      throw new Unreadable("The line to emceepee was cut.");
    }
  }

  /** Read one stream until the reply or the end. */
  async #listen(response, id, hooks) {
    const seen = { reply: null, lastEventId: null };
    const hear = (event) => {
      if (event.id) {
        seen.lastEventId = event.id;
        hooks.onEventId?.(event.id);
      }
      const message = parsed(event.data);
      if (message?.method === "notifications/progress") hooks.onProgress?.(message.params);
      else if (message && message.id === id && !message.method) seen.reply = message;
    };
    try {
      await readEvents(response, hear);
    } catch {
      // Cut: what was seen so far says where to go on.
    }
    return seen;
  }

  async #takenUp(id, lastEventId, hooks) {
    if (!lastEventId) throw new Unreadable("The line was cut before the answer could be followed.");
    return this.catchingUp(async () => {
      const backoff = new Backoff();
      for (let last = lastEventId; ;) {
        const response = await this.#get(last);
        if (response) {
          const seen = await this.#listen(response, id, hooks);
          if (seen.reply) return seen.reply;
          if (seen.lastEventId) backoff.reset();
          last = seen.lastEventId ?? last;
        }
        await backoff.wait();
      }
    });
  }

  /** The stream behind that event, or null if emceepee cannot be reached now. */
  async #get(lastEventId) {
    const sessionId = this.#kept.sessionId;
    if (!sessionId) throw new SessionGone("The session of this page had ended.");
    let response;
    try {
      const headers = { ...this.#headers(), accept: "text/event-stream", "last-event-id": lastEventId };
      response = await fetch(ADDRESS, { headers, cache: "no-store" });
    } catch {
      return null;
    }
    if (response.status === 401) toLogin();
    if (response.status === 404) this.#gone(sessionId);
    if (response.status === 400) throw new Unreadable("emceepee no longer keeps what came after the cut.");
    return response.ok && isEventStream(response) ? response : null;
  }
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

function resultOf(reply) {
  if (reply?.error) throw new Refused(String(reply.error.message ?? "emceepee refused the request."));
  if (reply?.result === undefined) throw new Refused("emceepee gave an answer that is not one.");
  return reply.result;
}

async function refusalOf(response) {
  const body = await response.json().catch(() => null);
  return String(body?.error?.message ?? `emceepee answered with status ${response.status}.`);
}
