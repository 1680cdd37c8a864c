// Calls that became tasks: the feed reports their progress, and their results are fetched at the end.

import { messageOf } from "../lib/errors.js";
import { getJson } from "../net/console-api.js";

/**
 * @import { Call, CallStatus, Ending } from "./calls.js"
 * @typedef {{ status: CallStatus } & Ending} TaskEnding
 */
/**
 * @typedef {object} Listeners
 * @property {(call: Call, progress: Wire.Progress | null | undefined) => void} onProgress
 * @property {(call: Call, status: CallStatus, ending: Ending) => void} onEnd
 */

const MISSING_AFTER_MS = 5000; // a task that the feed does not mention for this long is looked up

export class TaskFollower {
  /** @type {Set<string>} */
  #fetching = new Set();
  /** @type {Map<string, number>} */
  #missingSince = new Map();

  /**
   * @param {import("../state/store.js").Store} store
   * @param {import("./call-recovery.js").CallRecovery} recovery
   * @param {Listeners} listeners
   */
  constructor(store, recovery, { onProgress, onEnd }) {
    this.store = store;
    this.recovery = recovery;
    this.onProgress = onProgress;
    this.onEnd = onEnd;
  }

  /** @param {Call[]} calls */
  follow(calls) {
    for (const call of calls) {
      const { status, taskId } = call;
      if (status === "task" && taskId && !this.#fetching.has(taskId)) this.#check(call, taskId);
    }
  }

  /**
   * @param {Call} call
   * @param {string} taskId
   */
  #check(call, taskId) {
    const found = this.store.findTask(taskId);
    if (found || this.store.feed.status !== "live") this.#missingSince.delete(taskId);
    if (found?.task.status === "working") this.onProgress(call, found.task.progress);
    else if (found) this.#resolve(call, taskId, () => this.#fetchResult(found));
    else if (this.store.feed.status === "live" && this.#isMissing(taskId))
      this.#resolve(call, taskId, () => this.#findMissing(taskId));
  }

  /** @param {string} taskId */
  #isMissing(taskId) {
    const since = this.#missingSince.get(taskId) ?? Date.now();
    this.#missingSince.set(taskId, since);
    return Date.now() - since > MISSING_AFTER_MS;
  }

  /**
   * @param {Call} call
   * @param {string} taskId
   * @param {() => Promise<TaskEnding | null>} ask
   */
  async #resolve(call, taskId, ask) {
    this.#fetching.add(taskId);
    try {
      const ending = await ask();
      if (ending) this.onEnd(call, ending.status, ending);
      else this.#missingSince.delete(taskId);
    } catch (error) {
      this.onEnd(call, "error", { note: messageOf(error) });
    }
    this.#fetching.delete(taskId);
  }

  /**
   * @param {{ session: string, task: Wire.Task }} found
   * @returns {Promise<TaskEnding>}
   */
  async #fetchResult({ session, task }) {
    const whole = await this.recovery.taskResult(task.taskId);
    const result = whole ?? (await getJson("/console/task", { session, id: task.taskId })).result ?? undefined;
    const isDone = task.status === "completed" && !result?.isError;
    const note = task.error ?? `It went on as a task, which is ${task.status}.`;
    return { status: isDone ? "done" : "error", result, note };
  }

  /**
   * The outcome of a task that no session has, or null if the task is still running.
   * @param {string} taskId
   * @returns {Promise<TaskEnding | null>}
   */
  async #findMissing(taskId) {
    const result = await this.recovery.taskResult(taskId);
    if (!result) return { status: "error", note: "Lost: the task is no longer known, and neither is its result." };
    if (result.structuredContent?.error?.code === "TOOL_ERR_TIMEOUT") return null;
    return { status: result.isError ? "error" : "done", result, note: "It went on as a task." };
  }
}
