// The tools of servers, asked for through this page's own MCP session, only when the person wants to see them.

import { asArray } from "../lib/safe-json.js";

const MAX_PAGES = 20;
/** @param {string} text */
const escapeRegExp = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

export class ToolCatalog {
  /** @type {Promise<void> | null} */
  #opening = null;

  /**
   * @param {import("../net/mcp-client.js").McpClient} client
   * @param {import("./calls.js").Calls} calls
   */
  constructor(client, calls) {
    this.client = client;
    this.calls = calls;
  }

  /** Servers are seen in sessions: where there is none (any more), this page opens its own. It connects no server. */
  ensureSession() {
    if (this.#opening) return;
    const reset = () => {
      this.#opening = null;
    };
    this.#opening = this.client.request("ping", {}).then(reset, reset); // the view comes again, if it failed
  }

  /**
   * `{ tools, errors }`, as the server sent them.
   * @param {string} server
   */
  async listTools(server) {
    /** @type {Wire.Tool[]} */
    const tools = [];
    /** @type {string[]} */
    const errors = [];
    /** @type {string | undefined} */
    let cursor;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const given = { server: `^${escapeRegExp(server)}$`, detail: "full", ...(cursor ? { cursor } : {}) };
      const result = await this.client.request("tools/call", { name: "list_tools", arguments: given });
      const answer = result.structuredContent ?? {};
      if (result.isError) throw new Error(answer.error?.message ?? "The tools could not be listed.");
      tools.push(...asArray(answer.tools));
      errors.push(...asArray(answer.errors).map((/** @type {any} */ error) => String(error?.message ?? error)));
      cursor = answer.nextCursor;
      if (!cursor) break;
    }
    return { tools, errors };
  }

  /**
   * @param {string} server
   * @param {string} tool
   * @param {unknown} args
   * @param {number} timeoutMs
   */
  call(server, tool, args, timeoutMs) {
    return this.calls.start(server, tool, args, timeoutMs);
  }
}
