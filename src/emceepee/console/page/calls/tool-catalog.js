// The offers of servers, requested through this page's own MCP session when the person opens them.

import { asArray } from "../lib/safe-json.js";
import { withConnectionSlot } from "../net/connection-limit.js";

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

  /** Servers are visible in sessions. If there is no session, this page opens its own, which connects no server. */
  ensureSession() {
    if (this.#opening) return;
    const reset = () => {
      this.#opening = null;
    };
    this.#opening = this.client.request("ping", {}).then(reset, reset); // the view requests it again if it failed
  }

  /**
   * The entries as the server sent them, and any error.
   * @param {string} server
   * @returns {Promise<{ entries: Wire.Tool[], errors: string[] }>}
   */
  listTools(server) {
    return this.#list("list_tools", "tools", `^${escapeRegExp(server)}$`);
  }

  /**
   * @param {string} server
   * @returns {Promise<{ entries: Wire.Resource[], errors: string[] }>}
   */
  listResources(server) {
    return this.#list("list_resources", "resources", server);
  }

  /**
   * @param {string} server
   * @returns {Promise<{ entries: Wire.Resource[], errors: string[] }>}
   */
  listTemplates(server) {
    return this.#list("list_resource_templates", "resourceTemplates", server);
  }

  /**
   * @param {string} server
   * @returns {Promise<{ entries: Wire.Prompt[], errors: string[] }>}
   */
  listPrompts(server) {
    return this.#list("list_prompts", "prompts", server);
  }

  /**
   * @param {string} server
   * @param {string} uri
   */
  readResource(server, uri) {
    return this.#ask("read_resource", { server, uri });
  }

  /**
   * @param {string} server
   * @param {string} name
   * @param {object} args
   */
  getPrompt(server, name, args) {
    return this.#ask("get_prompt", { server, name, arguments: args });
  }

  /**
   * Fetches all pages.
   * @param {string} tool
   * @param {string} key
   * @param {string} server
   */
  async #list(tool, key, server) {
    /** @type {any[]} */
    const entries = [];
    /** @type {string[]} */
    const errors = [];
    /** @type {string | undefined} */
    let cursor;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer = await this.#ask(tool, { server, detail: "full", ...(cursor ? { cursor } : {}) });
      entries.push(...asArray(answer[key]));
      errors.push(...asArray(answer.errors).map((/** @type {any} */ error) => String(error?.message ?? error)));
      cursor = answer.nextCursor;
      if (!cursor) break;
    }
    return { entries, errors };
  }

  /**
   * The tool's result, as a value.
   * @param {string} tool
   * @param {unknown} given
   * @returns {Promise<any>}
   */
  async #ask(tool, given) {
    const result = await withConnectionSlot(() =>
      this.client.request("tools/call", { name: tool, arguments: given }),
    );
    const answer = result.structuredContent ?? {};
    if (result.isError) throw new Error(answer.error?.message ?? "emceepee could not do that, and did not say why.");
    return answer;
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
