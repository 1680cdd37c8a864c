// The tools of servers, asked for through this page's own MCP session, only when the person wants to see them.

import { list } from "../state/store.js";

const MOST_PAGES = 20;
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

export class Toolbox {
  #asking = null;

  constructor(client, calls) {
    this.client = client;
    this.calls = calls;
  }

  /** Servers are seen in sessions: where there is none (any more), this page opens its own. It connects no server. */
  needSession() {
    if (this.#asking) return;
    const forget = () => {
      this.#asking = null;
    };
    this.#asking = this.client.request("ping", {}).then(forget, forget); // the view comes again, if it failed
  }

  /** `{ tools, errors }`, as the server sent them. */
  async toolsOf(server) {
    const tools = [];
    const errors = [];
    let cursor;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const given = { server: `^${escaped(server)}$`, detail: "full", ...(cursor ? { cursor } : {}) };
      const result = await this.client.request("tools/call", { name: "list_tools", arguments: given });
      const answer = result.structuredContent ?? {};
      if (result.isError) throw new Error(answer.error?.message ?? "The tools could not be listed.");
      tools.push(...list(answer.tools));
      errors.push(...list(answer.errors).map((error) => String(error?.message ?? error)));
      cursor = answer.nextCursor;
      if (!cursor) break;
    }
    return { tools, errors };
  }

  call(server, tool, args, timeoutMs) {
    return this.calls.start(server, tool, args, timeoutMs);
  }
}
