// Finds a call whose stream can no longer be read: among the session's tasks, or in the console's stored requests.

import { asArray } from "../lib/safe-json.js";
import { Backoff } from "../net/backoff.js";
import { getJson } from "../net/console-api.js";
import { SessionGone } from "../net/mcp-client.js";
import { serverNow } from "../state/server-clock.js";
import { isOwnSession } from "../state/session-names.js";

/**
 * @import { Call } from "./calls.js"
 * @typedef {{ result?: Wire.ToolResult, taskId?: string, note: string }} Found
 */

const CLOCK_SKEW_MS = 3000;
const GRACE_MS = 60_000; // in addition to the call's own timeout
const FEED_DELAY_MS = 4000; // after this time, a request that arrived is in the feed
const SAVED_AS_TASK = "The connection was cut. The answer was kept as a task.";

export class CallRecovery {
  /**
   * @param {import("../net/mcp-client.js").McpClient} client
   * @param {import("../state/store.js").Store} store
   * @param {(taskId: string) => boolean} isClaimed
   */
  constructor(client, store, isClaimed) {
    this.client = client;
    this.store = store;
    this.isClaimed = isClaimed;
  }

  /**
   * Raises: SessionGone.
   * @param {Call} call
   * @returns {Promise<Found>}
   */
  async find(call) {
    const backoff = new Backoff();
    for (;;) {
      const found = (await this.#findTask(call)) ?? (await this.#findInFeed(call));
      if (found) return found;
      if (serverNow() > call.startedAt + call.timeoutMs + GRACE_MS)
        return { note: "Lost: the connection was cut and no answer was found." };
      await backoff.wait();
    }
  }

  /**
   * @param {Call} call
   * @returns {Promise<Found | null>}
   */
  async #findTask(call) {
    const reply = await this.#callTool("list_tasks", { server: call.server, include_completed: true });
    const candidates = asArray(reply?.structuredContent?.tasks).filter((task) => this.#mayBe(call, task));
    for (const task of candidates) {
      if (candidates.length > 1 && !(await this.#hasSameArguments(call, task))) continue;
      if (task.status === "working")
        return { taskId: task.taskId, note: "The connection was cut. The call goes on as a task." };
      const result = await this.taskResult(task.taskId);
      if (result) return { taskId: task.taskId, result, note: SAVED_AS_TASK };
    }
    return null;
  }

  /**
   * The whole result of a task that has ended, or null if this session does not have it.
   * @param {string} taskId
   * @returns {Promise<Wire.ToolResult | null>}
   */
  async taskResult(taskId) {
    if (!this.client.hasSession) return null;
    const result = await this.#callTool("get_task_result", { task_id: taskId, timeout_ms: 1000 });
    return result?.structuredContent?.error?.code === "ERR_TASK_NOT_FOUND" ? null : result;
  }

  /**
   * @param {Call} call
   * @param {Wire.Task} task
   */
  #mayBe(call, task) {
    const isSameTool = task.server === call.server && task.toolName === call.tool;
    return isSameTool && !this.isClaimed(task.taskId) && Date.parse(task.createdAt) > call.startedAt - CLOCK_SKEW_MS;
  }

  /**
   * @param {Call} call
   * @param {Wire.Task} task
   */
  async #hasSameArguments(call, task) {
    const reply = await this.#callTool("get_task", { task_id: task.taskId });
    return canonicalJson(reply?.structuredContent?.task?.toolArgs ?? {}) === canonicalJson(call.args ?? {});
  }

  /**
   * The feed shows whether the call arrived, and its outcome.
   * @param {Call} call
   * @returns {Promise<Found | null>}
   */
  async #findInFeed(call) {
    const session = [...this.store.sessions.values()].find(isOwnSession);
    if (!session || this.store.feed.status !== "live") return null;
    const row = this.store.rows.ordered.findLast((each) => isRowOf(call, each, session.id));
    if (!row) {
      return serverNow() - call.startedAt > FEED_DELAY_MS
        ? { note: "Lost: the call did not reach emceepee. It can be made again." }
        : null;
    }
    if (row.status === "pending") return null;
    const answer = await getJson("/console/request", { session: session.id, id: row.id }).catch(() => null);
    const note = "The connection was cut. This is what the console kept of the answer.";
    if (answer?.result) return { result: answer.result, note };
    return { note: row.error ?? "The connection was cut, and the answer was not kept." };
  }

  /**
   * @param {string} name
   * @param {unknown} args
   * @returns {Promise<Wire.ToolResult | null>}
   */
  async #callTool(name, args) {
    try {
      return await this.client.request("tools/call", { name, arguments: args }, { sameSessionOnly: true });
    } catch (error) {
      if (error instanceof SessionGone) throw error;
      return null;
    }
  }
}

/**
 * @param {Call} call
 * @param {Wire.RequestRow} row
 * @param {string} sessionId
 */
function isRowOf(call, row, sessionId) {
  const isNear = row.startedAt > call.startedAt - CLOCK_SKEW_MS && row.startedAt < call.startedAt + 2 * CLOCK_SKEW_MS;
  return row.session === sessionId && row.name === call.tool && row.server === call.server && isNear;
}

/**
 * @param {any} value
 * @returns {string}
 */
function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
    .join()}}`;
}
