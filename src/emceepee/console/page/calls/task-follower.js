// Calls that became tasks: the feed tells how they go on; when they have ended, their results are fetched.

import { getJson } from "../net/console-api.js";

const UNKNOWN_MS = 5000; // a task that the feed does not name for so long is looked for

export class TaskFollower {
  #fetching = new Set();
  #missingSince = new Map();

  /** `onProgress(call, progress)` and `onEnd(call, status, { result, note })` hear what becomes of a call. */
  constructor(store, search, { onProgress, onEnd }) {
    Object.assign(this, { store, search, onProgress, onEnd });
  }

  follow(calls) {
    for (const call of calls) {
      if (call.status === "task" && !this.#fetching.has(call.taskId)) this.#look(call);
    }
  }

  #look(call) {
    const found = this.store.findTask(call.taskId);
    if (found || this.store.feed.status !== "live") this.#missingSince.delete(call.taskId);
    if (found?.task.status === "working") this.onProgress(call, found.task.progress);
    else if (found) this.#fetch(call, () => this.#ended(found));
    else if (this.store.feed.status === "live" && this.#isMissing(call)) this.#fetch(call, () => this.#unknown(call));
  }

  #isMissing({ taskId }) {
    if (!this.#missingSince.has(taskId)) this.#missingSince.set(taskId, Date.now());
    return Date.now() - this.#missingSince.get(taskId) > UNKNOWN_MS;
  }

  async #fetch(call, ask) {
    this.#fetching.add(call.taskId);
    try {
      const ending = await ask();
      if (ending) this.onEnd(call, ending.status, ending);
      else this.#missingSince.delete(call.taskId);
    } catch (error) {
      this.onEnd(call, "error", { note: error.message });
    }
    this.#fetching.delete(call.taskId);
  }

  async #ended({ session, task }) {
    const whole = await this.search.taskResult(task.taskId);
    const result = whole ?? (await getJson("/console/task", { session, id: task.taskId })).result ?? undefined;
    const isDone = task.status === "completed" && !result?.isError;
    const note = task.error ?? `It went on as a task, which is ${task.status}.`;
    return { status: isDone ? "done" : "error", result, note };
  }

  /** What became of a task that no session has, or null if it works after all. */
  async #unknown(call) {
    const result = await this.search.taskResult(call.taskId);
    if (!result) return { status: "error", note: "Lost: the task is no longer known, and neither is its result." };
    if (result.structuredContent?.error?.code === "TOOL_ERR_TIMEOUT") return null;
    return { status: result.isError ? "error" : "done", result, note: "It went on as a task." };
  }
}
