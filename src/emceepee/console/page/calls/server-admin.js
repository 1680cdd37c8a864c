// Adds, changes, and removes servers with the tools that every caller uses, in this page's own session, so that the
// same rules apply. Only actions without a tool use the console's own routes.

import { withConnectionSlot } from "../net/connection-limit.js";
import { getJson, postJson } from "../net/console-api.js";

export class ServerAdmin {
  /** @param {import("../net/mcp-client.js").McpClient} client */
  constructor(client) {
    this.client = client;
  }

  /**
   * Connect and store a server, or with `isEdit`, change the settings of an added one. Resolves to its view.
   * @param {Wire.ServerEntry} entry
   * @param {{ isEdit?: boolean }} [options]
   * @returns {Promise<Wire.Server>}
   */
  async save(entry, { isEdit = false } = {}) {
    const given = isEdit ? { ...entry, replace: true } : entry;
    const answer = await this.#call("add_server", given);
    return answer.server ?? {};
  }

  /** @param {string} name */
  async remove(name) {
    await this.#call("remove_server", { name });
  }

  /**
   * The settings that would add the server again, with possible secrets masked.
   * @param {string} session
   * @param {string} server
   * @returns {Promise<Wire.ServerEntry>}
   */
  async settings(session, server) {
    return (await getJson("/console/server-settings", { session, server })).entry;
  }

  /**
   * @param {string} session
   * @param {string} server
   * @param {boolean} isEnabled
   */
  async setEnabled(session, server, isEnabled) {
    await postJson(isEnabled ? "/console/enable-server" : "/console/disable-server", { session, server });
  }

  /**
   * @param {string} name
   * @param {unknown} given
   */
  async #call(name, given) {
    const result = await withConnectionSlot(() =>
      this.client.request("tools/call", { name, arguments: given }),
    );
    const answer = result.structuredContent ?? {};
    if (result.isError) throw new Error(answer.error?.message ?? "emceepee refused that, and did not say why.");
    return answer;
  }
}
