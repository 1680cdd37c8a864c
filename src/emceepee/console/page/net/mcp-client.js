// An MCP client over Streamable HTTP. A request is sent once; an interrupted stream is resumed at its last event.

import { Backoff } from "./backoff.js";
import { redirectToLogin } from "./console-api.js";
import { loadItem, saveItem } from "./session-storage.js";
import { isEventStream, readEvents } from "./sse.js";
import { MCP_KEY } from "./tab-claim.js";

/**
 * @typedef {{ sessionId: string | null, nextId: number }} Saved What a reload finds again.
 * @typedef {"idle" | "open" | "lost" | "resuming"} State
 * @typedef {{ onEventId?: (id: string) => void, onProgress?: (progress: Wire.Progress) => void }} Hooks
 * @typedef {{ id?: number, sameSessionOnly?: boolean } & Hooks} RequestOptions
 * @typedef {{ jsonrpc: "2.0", id?: number, method?: string, params?: any, result?: any, error?: any }} Message
 */

const PROTOCOL_VERSION = "2025-11-25";
const ENDPOINT = "/mcp";

/** The session ended: its requests can no longer be queried. */
export class SessionGone extends Error {}
/** The request may have arrived, but its answer cannot be read: no event id was received, or it has expired. */
export class ResponseLost extends Error {}
/** emceepee answered with a JSON-RPC error, or rejected the request. */
export class RequestRejected extends Error {}

export class McpClient {
  /** @type {State} */
  state = "idle";
  /** @type {Saved} */
  #saved = { sessionId: null, nextId: 1 };
  /** @type {Promise<void> | null} */
  #opening = null;
  #resuming = 0;

  /**
   * @param {{ nonce: string, onState: (state: State) => void, onSessionGone: (refusedId?: number) => void }} settings
   */
  constructor({ nonce, onState, onSessionGone }) {
    this.nonce = nonce;
    this.onState = onState;
    this.onSessionGone = onSessionGone;
    this.#saved = loadItem(MCP_KEY, this.#saved);
    if (this.#saved.sessionId) this.#setState("open");
  }

  get hasSession() {
    return Boolean(this.#saved.sessionId);
  }

  /** An id that was never used before in this session, stored before it is used. */
  allocateId() {
    const id = this.#saved.nextId;
    this.#save({ nextId: id + 1 });
    return id;
  }

  /**
   * The result. A `sameSessionOnly` request makes no sense in another session. Raises: SessionGone, ResponseLost,
   * RequestRejected.
   * @param {string} method
   * @param {unknown} params
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, params, { id = this.allocateId(), sameSessionOnly = false, ...hooks } = {}) {
    try {
      await this.open();
    } catch (error) {
      throw error instanceof ResponseLost
        ? new RequestRejected("emceepee could not be reached, so nothing was sent.")
        : error;
    }
    /** @type {Message} */
    const message = { jsonrpc: "2.0", id, method, params };
    const response = await this.#post(message).catch(async (error) => {
      if (!(error instanceof SessionGone) || sameSessionOnly) throw error;
      // Rejected before it ran: a request in the new session does not repeat it.
      await this.open();
      return this.#post(message);
    });
    return resultOf(await this.#readReply(response, id, hooks));
  }

  /**
   * The result of a request that was sent before a reload.
   * @param {number} id
   * @param {string} lastEventId
   * @param {Hooks} hooks
   * @returns {Promise<any>}
   */
  async resume(id, lastEventId, hooks) {
    return resultOf(await this.#resumeStream(id, lastEventId, hooks));
  }

  /**
   * @param {string} method
   * @param {unknown} params
   */
  async notify(method, params) {
    if (!this.hasSession) return;
    await this.#post({ jsonrpc: "2.0", method, params }).catch(() => {});
  }

  // The session.

  /** @returns {Promise<void>} */
  open() {
    if (this.hasSession && !this.#opening) return Promise.resolve();
    this.#opening ??= this.#initialize().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #initialize() {
    const params = {
      protocolVersion: PROTOCOL_VERSION,
      capabilities: {},
      clientInfo: { name: "emceepee-console", version: this.nonce },
    };
    const id = this.allocateId();
    const response = await this.#post(
      { jsonrpc: "2.0", id, method: "initialize", params },
      { "Emceepee-Connect": "on-use" },
    );
    const sessionId = response.headers.get("mcp-session-id");
    const reply = await this.#readReply(response, id, {});
    if (!sessionId) throw new RequestRejected("emceepee opened no session.");
    resultOf(reply);
    this.#save({ sessionId });
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    this.#setState("open");
  }

  /**
   * @param {string} sessionId
   * @param {number} [refusedId]
   * @returns {never}
   */
  #handleSessionGone(sessionId, refusedId) {
    if (sessionId === this.#saved.sessionId) {
      this.#save({ sessionId: null });
      this.#setState("lost");
      // A session that ended while it was being opened had no running requests.
      if (!this.#opening) this.onSessionGone(refusedId);
      this.open().catch(() => {});
    }
    throw new SessionGone("The session of this page had ended.");
  }

  /** @param {Partial<Saved>} change */
  #save(change) {
    Object.assign(this.#saved, change);
    saveItem(MCP_KEY, this.#saved);
  }

  /** @param {State} state */
  #setState(state) {
    this.state = state;
    this.onState(this.#resuming > 0 && state === "open" ? "resuming" : state);
  }

  /**
   * While `work` runs, the page shows that it is catching up.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async whileResuming(work) {
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

  /**
   * @param {Message} message
   * @param {Record<string, string>} [headers]
   */
  async #post(message, headers) {
    const sessionId = this.#saved.sessionId;
    let response;
    try {
      response = await fetch(ENDPOINT, {
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
      throw new ResponseLost("The connection to emceepee was cut.");
    }
    if (response.status === 401) redirectToLogin();
    if (response.status === 404 && sessionId) this.#handleSessionGone(sessionId, message.id);
    if (!response.ok) throw new RequestRejected(await errorMessageOf(response));
    return response;
  }

  /** @returns {Record<string, string>} */
  #headers() {
    const { sessionId } = this.#saved;
    return sessionId ? { "mcp-session-id": sessionId, "mcp-protocol-version": PROTOCOL_VERSION } : {};
  }

  /**
   * @param {Response} response
   * @param {number} id
   * @param {Hooks} hooks
   * @returns {Promise<Message>}
   */
  async #readReply(response, id, hooks) {
    if (isEventStream(response)) {
      const seen = await this.#readStream(response, id, hooks);
      return seen.reply ?? this.#resumeStream(id, seen.lastEventId, hooks);
    }
    try {
      return await response.json();
    } catch {
      throw new ResponseLost("The connection to emceepee was cut.");
    }
  }

  /**
   * Read one stream until the reply or the end.
   * @param {Response} response
   * @param {number} id
   * @param {Hooks} hooks
   */
  async #readStream(response, id, hooks) {
    /** @type {{ reply: Message | null, lastEventId: string | null }} */
    const seen = { reply: null, lastEventId: null };
    const handle = (/** @type {import("./sse.js").SseEvent} */ event) => {
      if (event.id) {
        seen.lastEventId = event.id;
        hooks.onEventId?.(event.id);
      }
      const message = parseMessage(event.data);
      if (message?.method === "notifications/progress") hooks.onProgress?.(message.params);
      else if (message && message.id === id && !message.method) seen.reply = message;
    };
    try {
      await readEvents(response, handle);
    } catch {
      // Interrupted: resume after the last event that was received.
    }
    return seen;
  }

  /**
   * @param {number} id
   * @param {string | null} lastEventId
   * @param {Hooks} hooks
   * @returns {Promise<Message>}
   */
  async #resumeStream(id, lastEventId, hooks) {
    if (!lastEventId) throw new ResponseLost("The connection was cut before the answer could be followed.");
    return this.whileResuming(async () => {
      const backoff = new Backoff();
      let last = lastEventId;
      for (;;) {
        const response = await this.#openStream(last);
        if (response) {
          const seen = await this.#readStream(response, id, hooks);
          if (seen.reply) return seen.reply;
          if (seen.lastEventId) backoff.reset();
          last = seen.lastEventId ?? last;
        }
        await backoff.wait();
      }
    });
  }

  /**
   * The stream after that event, or null if emceepee is currently unreachable.
   * @param {string} lastEventId
   * @returns {Promise<Response | null>}
   */
  async #openStream(lastEventId) {
    const sessionId = this.#saved.sessionId;
    if (!sessionId) throw new SessionGone("The session of this page had ended.");
    let response;
    try {
      const headers = { ...this.#headers(), accept: "text/event-stream", "last-event-id": lastEventId };
      response = await fetch(ENDPOINT, { headers, cache: "no-store" });
    } catch {
      return null;
    }
    if (response.status === 401) redirectToLogin();
    if (response.status === 404) this.#handleSessionGone(sessionId);
    if (response.status === 400) throw new ResponseLost("emceepee no longer keeps what came after the cut.");
    return response.ok && isEventStream(response) ? response : null;
  }
}

/**
 * @param {string} data
 * @returns {Message | null}
 */
function parseMessage(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

/**
 * @param {Message | null} reply
 * @returns {any}
 */
function resultOf(reply) {
  if (reply?.error) throw new RequestRejected(String(reply.error.message ?? "emceepee refused the request."));
  if (reply?.result === undefined) throw new RequestRejected("emceepee gave an answer that is not one.");
  return reply.result;
}

/** @param {Response} response */
async function errorMessageOf(response) {
  const body = await response.json().catch(() => null);
  return String(body?.error?.message ?? `emceepee answered with status ${response.status}.`);
}
