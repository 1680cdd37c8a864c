// The calls made from this tab: running ones, what became of them, and how they are found again after a reload.

import { everySecond, now } from "../state/server-clock.js";
import { CallSearch } from "./call-recovery.js";
import { stringify } from "../text/safe-json.js";
import { load, save } from "../net/session-storage.js";
import { withLine } from "../net/connection-limit.js";
import { Refused, SessionGone, Unreadable } from "../net/mcp-client.js";
import { CALLS } from "../net/tab-claim.js";
import { TaskFollower } from "./task-follower.js";

const MOST_KEPT = 25;
const MOST_RESULT = 100_000; // characters of one result that a reload may find again
const SAVE_MS = 200;

export class Calls {
  /** Newest first. */
  all = [];
  justStarted = null;
  #listeners = new Set();
  #saveTimer = null;

  constructor(client, store) {
    this.client = client;
    this.store = store;
    this.search = new CallSearch(client, store, (taskId) => this.all.some((call) => call.taskId === taskId));
    this.follower = new TaskFollower(store, this.search, {
      onProgress: (call, progress) => this.#progressed(call, progress),
      onEnd: (call, status, ending) => this.#end(call, status, ending),
    });
    this.all = load(CALLS, []).filter((call) => call && typeof call.tool === "string");
    addEventListener("pagehide", () => this.#saveNow());
    store.subscribe((topics) => topics.has("sessions") && this.#followTasks());
    everySecond(() => this.#followTasks());
  }

  subscribe(listener) {
    this.#listeners.add(listener);
  }

  // Beginning.

  start(server, tool, args, timeoutMs) {
    const call = {
      key: `${this.client.nonce}-${this.client.takeId()}`,
      server,
      tool,
      args,
      timeoutMs,
      startedAt: now(),
      status: "running",
      isSent: false,
    };
    this.justStarted = call.key;
    this.all = [call, ...this.all].slice(0, MOST_KEPT * 2);
    this.#changed();
    this.#send(call);
    return call;
  }

  #send(call) {
    return withLine(() => this.#sendNow(call));
  }

  async #sendNow(call) {
    if (call.status !== "running") return;
    call.id = this.client.takeId();
    call.isSent = true;
    this.#saveNow();
    // The person answers questions on this very page, so the call goes on waiting for the answer.
    const given = {
      server: call.server,
      tool: call.tool,
      args: call.args,
      timeout_ms: call.timeoutMs,
      on_question: "wait",
    };
    const params = { name: "execute_tool", arguments: given, _meta: { progressToken: call.key } };
    await this.#finish(call, () => this.client.request("tools/call", params, { id: call.id, ...this.#hooks(call) }));
  }

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
        this.#changed();
      },
    };
  }

  /** After a reload: every call that was running is taken up. Nothing is sent a second time. */
  resumeAll() {
    for (const call of this.all) {
      if (call.status !== "running") continue;
      if (!call.isSent) this.#send(call);
      else if (!this.client.hasSession)
        this.#end(call, "error", { note: "The session had ended before the answer came." });
      else if (call.lastEventId) withLine(() => this.#resume(call));
      else this.#lookFor(call);
    }
    this.#changed();
  }

  #resume(call) {
    return this.#finish(call, () => this.client.resume(call.id, call.lastEventId, this.#hooks(call)));
  }

  cancel(call) {
    if (call.isSent)
      this.client.notify("notifications/cancelled", { requestId: call.id, reason: "Cancelled in the console" });
    else this.#end(call, "error", { note: "Cancelled before it was sent." });
  }

  clearFinished() {
    this.all = this.all.filter((call) => call.status === "running" || (call.status === "task" && !call.endedAt));
    this.#changed();
  }

  // Ending.

  async #finish(call, ask) {
    try {
      this.#settle(call, await ask());
    } catch (error) {
      if (error instanceof Unreadable) await this.#lookFor(call);
      else if (error instanceof SessionGone) this.#lost(call);
      else if (error instanceof Refused) this.#end(call, "error", { note: error.message });
      else this.#end(call, "error", { note: `Something went wrong on this page: ${error.message}` });
    }
  }

  /** The stream cannot be read on. An answer that nobody read is kept as a finished task: look there. */
  async #lookFor(call) {
    call.note = "The line was cut. Looking for the call…";
    this.#changed();
    try {
      const found = await this.client.catchingUp(() => this.search.find(call));
      if (found.taskId) call.taskId = found.taskId;
      if (found.result) this.#settle(call, found.result, found.note);
      else if (found.taskId) {
        this.#end(call, "task", { note: found.note });
        this.#followTasks();
      } else this.#end(call, "error", { note: found.note });
    } catch (error) {
      if (error instanceof SessionGone) this.#lost(call);
      else this.#end(call, "error", { note: error.message });
    }
  }

  #settle(call, result, note = "") {
    const task = result.structuredContent?.proxy_task;
    if (task?.task_id) {
      call.taskId = task.task_id;
      call.status = "task";
      call.note = "It takes longer, and goes on as a task.";
      this.#changed();
      this.#saveNow();
      this.#followTasks();
    } else this.#end(call, result.isError ? "error" : "done", { result, note });
  }

  #end(call, status, { result, note }) {
    if (call.status !== "running" && call.status !== "task") return;
    Object.assign(call, { status, note, result, endedAt: status === "task" ? undefined : now() });
    delete call.lastEventId;
    this.#changed();
    this.#saveNow();
  }

  #lost(call) {
    this.#end(call, "error", {
      note: "Lost: the session had ended before the answer came. It may have been carried out.",
    });
  }

  /** The session ended; the request with `refusedId` was not taken, and goes to the next session. */
  sessionGone(refusedId) {
    for (const call of this.all)
      if (call.status === "running" && call.isSent && call.id !== refusedId) this.#lost(call);
  }

  #followTasks() {
    this.follower.follow(this.all);
  }

  #progressed(call, progress) {
    if (progress) call.progress = progress;
    this.#changed();
  }

  // Telling and keeping.

  #changed() {
    this.#saveSoon();
    for (const listener of this.#listeners) listener();
  }

  #saveSoon() {
    this.#saveTimer ??= setTimeout(() => this.#saveNow(), SAVE_MS);
  }

  #saveNow() {
    clearTimeout(this.#saveTimer);
    this.#saveTimer = null;
    const isOpen = (call) => call.status === "running" || call.status === "task";
    const kept = this.all.filter((call, index) => index < MOST_KEPT || isOpen(call)).map(withSmallResult);
    if (!save(CALLS, kept)) save(CALLS, kept.filter(isOpen));
  }
}

function withSmallResult(call) {
  if (call.result === undefined || stringify(call.result).length <= MOST_RESULT) return call;
  return { ...call, result: undefined, note: "The result was too large to be kept over a reload." };
}
