// Finding a call whose stream cannot be read any more: among the session's tasks, or in what the console kept of it.

import { getJson } from "../net/console-api.js";
import { Backoff } from "../net/backoff.js";
import { now } from "../state/server-clock.js";
import { SessionGone } from "../net/mcp-client.js";
import { isOwnSession } from "../state/session-names.js";
import { list } from "../state/store.js";

const CLOCKS_DIFFER_MS = 3000;
const GRACE_MS = 60_000; // beyond the call's own patience
const SEEN_BY_NOW_MS = 4000; // a request that arrived is in the feed by then
const AS_TASK = "The line was cut. The answer was kept as a task.";

export class CallSearch {
  constructor(client, store, isTaken) {
    Object.assign(this, { client, store, isTaken });
  }

  /** `{ result?, taskId?, note }`. Raises: SessionGone. */
  async find(call) {
    const backoff = new Backoff();
    for (;;) {
      const found = (await this.#amongTasks(call)) ?? (await this.#amongRows(call));
      if (found) return found;
      if (now() > call.startedAt + call.timeoutMs + GRACE_MS)
        return { note: "Lost: the line was cut and no answer was found." };
      await backoff.wait();
    }
  }

  async #amongTasks(call) {
    const reply = await this.#tool("list_tasks", { server: call.server, include_completed: true });
    const candidates = list(reply?.structuredContent?.tasks).filter((task) => this.#couldBe(call, task));
    for (const task of candidates) {
      if (candidates.length > 1 && !(await this.#hasSameArguments(call, task))) continue;
      if (task.status === "working")
        return { taskId: task.taskId, note: "The line was cut. The call goes on as a task." };
      const result = await this.taskResult(task.taskId);
      if (result) return { taskId: task.taskId, result, note: AS_TASK };
    }
    return null;
  }

  /** The whole result of a task that has ended, or null if this session does not know it. */
  async taskResult(taskId) {
    if (!this.client.hasSession) return null;
    const result = await this.#tool("get_task_result", { task_id: taskId, timeout_ms: 1000 });
    return result?.structuredContent?.error?.code === "ERR_TASK_NOT_FOUND" ? null : result;
  }

  #couldBe(call, task) {
    const isSameTool = task.server === call.server && task.toolName === call.tool;
    return isSameTool && !this.isTaken(task.taskId) && Date.parse(task.createdAt) > call.startedAt - CLOCKS_DIFFER_MS;
  }

  async #hasSameArguments(call, task) {
    const reply = await this.#tool("get_task", { task_id: task.taskId });
    return canonical(reply?.structuredContent?.task?.toolArgs ?? {}) === canonical(call.args ?? {});
  }

  /** The feed knows whether the call arrived, and what came of it. */
  async #amongRows(call) {
    const session = [...this.store.sessions.values()].find(isOwnSession);
    if (!session || this.store.feed.status !== "live") return null;
    const row = this.store.rows.ordered.findLast((each) => isRowOf(call, each, session.id));
    if (!row) {
      return now() - call.startedAt > SEEN_BY_NOW_MS
        ? { note: "Lost: the call did not reach emceepee. It can be made again." }
        : null;
    }
    if (row.status === "pending") return null;
    const answer = await getJson("/console/request", { session: session.id, id: row.id }).catch(() => null);
    const note = "The line was cut. This is what the console kept of the answer.";
    if (answer?.result) return { result: answer.result, note };
    return { note: row.error ?? "The line was cut, and the answer was not kept." };
  }

  async #tool(name, args) {
    try {
      return await this.client.request("tools/call", { name, arguments: args }, { staysInSession: true });
    } catch (error) {
      if (error instanceof SessionGone) throw error;
      return null;
    }
  }
}

function isRowOf(call, row, sessionId) {
  const isNear =
    row.startedAt > call.startedAt - CLOCKS_DIFFER_MS && row.startedAt < call.startedAt + 2 * CLOCKS_DIFFER_MS;
  return row.session === sessionId && row.name === call.tool && row.server === call.server && isNear;
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join()}}`;
}
