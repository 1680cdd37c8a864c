// The calls made from this tab: running and finished ones, and their recovery after a reload.

import { messageOf } from "../lib/errors.js";
import { stringify } from "../lib/safe-json.js";
import { withConnectionSlot } from "../net/connection-limit.js";
import { RequestRejected, ResponseLost, SessionGone } from "../net/mcp-client.js";
import { loadItem, saveItem } from "../net/session-storage.js";
import { CALLS_KEY } from "../net/tab-claim.js";
import { everySecond, serverNow } from "../state/server-clock.js";
import { CallRecovery } from "./call-recovery.js";
import { TaskFollower } from "./task-follower.js";

/**
 * @import { McpClient } from "../net/mcp-client.js"
 * @import { Store } from "../state/store.js"
 */
/**
 * A call made from this tab.
 * @typedef {object} Call
 * @property {string} key
 * @property {string} server
 * @property {string} tool
 * @property {any} args
 * @property {number} timeoutMs
 * @property {number} startedAt
 * @property {CallStatus} status
 * @property {boolean} isSent
 * @property {number} [id] Of the request, once it was sent.
 * @property {string} [lastEventId] Where its stream can be resumed.
 * @property {string} [taskId]
 * @property {Wire.Progress} [progress]
 * @property {Wire.ToolResult} [result]
 * @property {string} [note]
 * @property {number} [endedAt]
 */
/**
 * @typedef {"running" | "task" | "done" | "error"} CallStatus
 * @typedef {{ result?: Wire.ToolResult, note?: string }} Ending
 */

const MAX_SAVED = 25;
const MAX_RESULT = 100_000; // characters of one result that are stored for a reload
const SAVE_DELAY_MS = 200;

export class Calls {
  /**
   * Newest first.
   * @type {Call[]}
   */
  all = [];
  /** @type {string | null} */
  justStarted = null;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #saveTimer;

  /**
   * @param {McpClient} client
   * @param {Store} store
   */
  constructor(client, store) {
    this.client = client;
    this.store = store;
    this.recovery = new CallRecovery(client, store, (taskId) => this.all.some((call) => call.taskId === taskId));
    this.follower = new TaskFollower(store, this.recovery, {
      onProgress: (call, progress) => this.#setProgress(call, progress),
      onEnd: (call, status, ending) => this.#finish(call, status, ending),
    });
    this.all = loadItem(CALLS_KEY, /** @type {Call[]} */ ([])).filter((call) => call && typeof call.tool === "string");
    addEventListener("pagehide", () => this.#saveNow());
    store.subscribe((topics) => topics.has("sessions") && this.#followTasks());
    everySecond(() => this.#followTasks());
  }

  /** @param {() => void} listener */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  // Starting.

  /**
   * @param {string} server
   * @param {string} tool
   * @param {unknown} args
   * @param {number} timeoutMs
   */
  start(server, tool, args, timeoutMs) {
    /** @type {Call} */
    const call = {
      key: `${this.client.nonce}-${this.client.allocateId()}`,
      server,
      tool,
      args,
      timeoutMs,
      startedAt: serverNow(),
      status: "running",
      isSent: false,
    };
    this.justStarted = call.key;
    this.all = [call, ...this.all].slice(0, MAX_SAVED * 2);
    this.#notify();
    this.#send(call);
    return call;
  }

  /** @param {Call} call */
  #send(call) {
    return withConnectionSlot(() => this.#sendNow(call));
  }

  /** @param {Call} call */
  async #sendNow(call) {
    if (call.status !== "running") return;
    call.id = this.client.allocateId();
    call.isSent = true;
    this.#saveNow();
    // The person answers questions on this very page, so the call continues to wait for the answer.
    const given = {
      server: call.server,
      tool: call.tool,
      args: call.args,
      timeout_ms: call.timeoutMs,
      on_question: "wait",
    };
    const params = { name: "execute_tool", arguments: given, _meta: { progressToken: call.key } };
    const options = { id: call.id, ...this.#hooks(call) };
    await this.#awaitResult(call, () => this.client.request("tools/call", params, options));
  }

  /**
   * @param {Call} call
   * @returns {import("../net/mcp-client.js").Hooks}
   */
  #hooks(call) {
    return {
      onEventId: (id) => {
        const isFirst = !call.lastEventId;
        call.lastEventId = id;
        if (isFirst) this.#saveNow();
        else this.#saveSoon();
      },
      onProgress: ({ progress, total, message }) => {
        call.progress = { progress, total, message };
        this.#notify();
      },
    };
  }

  /** After a reload, every call that was running is resumed. Nothing is sent a second time. */
  resumeAll() {
    for (const call of this.all) {
      if (call.status !== "running") continue;
      if (!call.isSent) this.#send(call);
      else if (!this.client.hasSession)
        this.#finish(call, "error", { note: "The session had ended before the answer came." });
      else if (call.id !== undefined && call.lastEventId) this.#resume(call, call.id, call.lastEventId);
      else this.#recover(call);
    }
    this.#notify();
  }

  /**
   * @param {Call} call
   * @param {number} id
   * @param {string} lastEventId
   */
  #resume(call, id, lastEventId) {
    return withConnectionSlot(() =>
      this.#awaitResult(call, () => this.client.resume(id, lastEventId, this.#hooks(call))),
    );
  }

  /** @param {Call} call */
  cancel(call) {
    if (call.isSent)
      this.client.notify("notifications/cancelled", { requestId: call.id, reason: "Cancelled in the console" });
    else this.#finish(call, "error", { note: "Cancelled before it was sent." });
  }

  clearFinished() {
    this.all = this.all.filter((call) => call.status === "running" || (call.status === "task" && !call.endedAt));
    this.#notify();
  }

  // Finishing.

  /**
   * @param {Call} call
   * @param {() => Promise<Wire.ToolResult>} ask
   */
  async #awaitResult(call, ask) {
    try {
      this.#handleResult(call, await ask());
    } catch (error) {
      if (error instanceof ResponseLost) await this.#recover(call);
      else if (error instanceof SessionGone) this.#markLost(call);
      else if (error instanceof RequestRejected) this.#finish(call, "error", { note: error.message });
      else this.#finish(call, "error", { note: `Something went wrong on this page: ${messageOf(error)}` });
    }
  }

  /**
   * The stream can no longer be read. An unread answer is stored as a finished task.
   * @param {Call} call
   */
  async #recover(call) {
    call.note = "The connection was cut. Looking for the call…";
    this.#notify();
    try {
      const found = await this.client.whileResuming(() => this.recovery.find(call));
      if (found.taskId) call.taskId = found.taskId;
      if (found.result) this.#handleResult(call, found.result, found.note);
      else if (found.taskId) {
        this.#finish(call, "task", { note: found.note });
        this.#followTasks();
      } else this.#finish(call, "error", { note: found.note });
    } catch (error) {
      if (error instanceof SessionGone) this.#markLost(call);
      else this.#finish(call, "error", { note: messageOf(error) });
    }
  }

  /**
   * @param {Call} call
   * @param {Wire.ToolResult} result
   * @param {string} [note]
   */
  #handleResult(call, result, note = "") {
    const task = result.structuredContent?.proxy_task;
    if (task?.task_id) {
      call.taskId = task.task_id;
      call.status = "task";
      call.note = "It takes longer, and goes on as a task.";
      this.#notify();
      this.#saveNow();
      this.#followTasks();
    } else this.#finish(call, result.isError ? "error" : "done", { result, note });
  }

  /**
   * @param {Call} call
   * @param {CallStatus} status
   * @param {Ending} ending
   */
  #finish(call, status, { result, note }) {
    if (call.status !== "running" && call.status !== "task") return;
    Object.assign(call, { status, note, result, endedAt: status === "task" ? undefined : serverNow() });
    delete call.lastEventId;
    this.#notify();
    this.#saveNow();
  }

  /** @param {Call} call */
  #markLost(call) {
    this.#finish(call, "error", {
      note: "Lost: the session had ended before the answer came. It may have been carried out.",
    });
  }

  /**
   * The session ended. The request with `refusedId` was rejected, and goes to the next session.
   * @param {number} [refusedId]
   */
  sessionGone(refusedId) {
    for (const call of this.all)
      if (call.status === "running" && call.isSent && call.id !== refusedId) this.#markLost(call);
  }

  #followTasks() {
    this.follower.follow(this.all);
  }

  /**
   * @param {Call} call
   * @param {Wire.Progress | null | undefined} progress
   */
  #setProgress(call, progress) {
    if (progress) call.progress = progress;
    this.#notify();
  }

  // Notifying listeners, and saving.

  #notify() {
    this.#saveSoon();
    for (const listener of this.#listeners) listener();
  }

  #saveSoon() {
    this.#saveTimer ??= setTimeout(() => this.#saveNow(), SAVE_DELAY_MS);
  }

  #saveNow() {
    clearTimeout(this.#saveTimer);
    this.#saveTimer = undefined;
    const isOpen = (/** @type {Call} */ call) => call.status === "running" || call.status === "task";
    const saved = this.all.filter((call, index) => index < MAX_SAVED || isOpen(call)).map(withoutLargeResult);
    if (!saveItem(CALLS_KEY, saved)) saveItem(CALLS_KEY, saved.filter(isOpen));
  }
}

/**
 * @param {Call} call
 * @returns {Call}
 */
function withoutLargeResult(call) {
  if (call.result === undefined || stringify(call.result).length <= MAX_RESULT) return call;
  return { ...call, result: undefined, note: "The result was too large to be kept over a reload." };
}
