// One server: its state in each session, its stderr output, and its offers.

import { singleLine, truncate } from "../../lib/display-text.js";
import { messageOf } from "../../lib/errors.js";
import { formatCoarse, formatTime } from "../../lib/format.js";
import { objectKey } from "../../lib/object-key.js";
import { loginLink } from "../../lib/web-address.js";
import { postJson } from "../../net/console-api.js";
import { serverNow } from "../../state/server-clock.js";
import { isOwnSession, sessionName } from "../../state/session-names.js";
import { bdi, h, nameLabel, reconcile, setAttribute, setText } from "../../ui/dom.js";
import { setFactRow } from "../../ui/fact-row.js";
import { logLine } from "../../ui/log-line.js";
import { showToast } from "../../ui/toast.js";
import { Offers } from "./offers.js";
import { RecordButton } from "./record-button.js";
import { ServerActions } from "./server-actions.js";

/**
 * @import { ServerAdmin } from "../../calls/server-admin.js"
 * @import { ToolCatalog } from "../../calls/tool-catalog.js"
 * @import { Store } from "../../state/store.js"
 */
/**
 * @typedef {{ session: Wire.Session, server: Wire.Server }} ServerConnection
 */
/**
 * A server across all sessions.
 * @typedef {object} ServerGroup
 * @property {string} name
 * @property {ServerConnection[]} connections
 * @property {string | null} session One that has it, for what is asked of it.
 * @property {string} url
 * @property {boolean} isConfigured It is of the configuration file.
 * @property {boolean} isDisabled
 */

const STDERR_LINES = 60;
const SCROLL_END_PX = 24;
// The first state that any session has represents the server. States that need attention come first.
const SEVERITY_ORDER = [
  "error",
  "authorizing",
  "reconnecting",
  "connecting",
  "connected",
  "disconnected",
  "not_connected",
];
/** @type {{ [status: string]: string }} */
export const STATUS_LABELS = {
  connecting: "Connecting",
  connected: "Connected",
  disconnected: "Disconnected",
  reconnecting: "Reconnecting",
  authorizing: "Waits for a login",
  error: "Error",
  not_connected: "Not connected",
  disabled: "Disabled",
};

export class ServerCard {
  /** @type {Wire.Log[] | null} */
  #logsSeen = null;
  /** @type {Map<string, { server: Wire.Server, at: number }>} */
  #received = new Map();

  /**
   * @param {Store} store
   * @param {string} name
   * @param {{ catalog: ToolCatalog, admin: ServerAdmin }} parts
   */
  constructor(store, name, { catalog, admin }) {
    this.store = store;
    this.name = name;
    this.badge = h("span", { class: "badge" });
    this.url = h("p", { class: "address code muted" });
    this.connections = h("ul", { class: "connections" });
    this.stderr = h("div", {
      class: "log-lines stderr",
      testid: "server-stderr",
      tabindex: "0",
      role: "log",
      "aria-label": `Standard error of ${name}`,
      "aria-live": "off",
    });
    this.stderrSection = h("section", { class: "stderr-section" }, h("h3", null, "Standard error"), this.stderr);
    this.offers = new Offers(name, catalog);
    this.actions = new ServerActions(name, admin);
    const link = h("a", { href: `#servers/${encodeURIComponent(name)}` }, nameLabel(name));
    this.element = h(
      "article",
      { class: "card server-card", testid: "server-card", dataset: { name } },
      h("header", { class: "card-head" }, h("h2", null, link), this.badge),
      this.url,
      this.actions.element,
      this.connections,
      this.stderrSection,
      this.offers.element,
    );
  }

  /** @param {ServerGroup} group */
  update(group) {
    const { connections, url } = group;
    const status = group.isDisabled
      ? "disabled"
      : (SEVERITY_ORDER.find((each) => connections.some(({ server }) => server.status === each)) ??
        connections[0]?.server.status ??
        "unknown");
    this.actions.update(group);
    this.offers.element.hidden = group.isDisabled;
    setAttribute(this.element, "data-status", status);
    setAttribute(this.badge, "data-status", status);
    setText(this.badge, STATUS_LABELS[status] ?? singleLine(status, 30));
    setText(this.url, truncate(url, 300));
    setAttribute(this.url, "title", url);
    for (const { session, server } of connections) this.#rememberReceipt(session.id, server);
    reconcile(
      this.connections,
      connections,
      ({ session }) => session.id,
      ({ session }) => this.#connectionRow(session.id),
    );
    this.#updateStderr();
  }

  /**
   * A countdown starts when its message arrives, not when it is drawn.
   * @param {string} sessionId
   * @param {Wire.Server} server
   */
  #rememberReceipt(sessionId, server) {
    if (this.#received.get(sessionId)?.server !== server) this.#received.set(sessionId, { server, at: serverNow() });
  }

  /**
   * @param {string} sessionId
   * @returns {import("../../ui/dom.js").Part}
   */
  #connectionRow(sessionId) {
    const state = h("span", { class: "badge small" });
    const who = bdi("", { class: "connection-session" });
    const facts = h("div", { class: "fact-row" });
    const error = h("p", { class: "error-text small" });
    const login = h("a", { class: "button primary small", target: "_blank", rel: "noopener noreferrer" }, "");
    const reconnect = h(
      "button",
      { type: "button", class: "button small", onclick: () => this.#reconnect(sessionId, reconnect) },
      "Reconnect",
    );
    const record = new RecordButton(this.name, sessionId);
    const element = h(
      "li",
      { class: "connection" },
      h("div", { class: "connection-info" }, h("span", { class: "connection-head" }, who, state), facts, error),
      login,
      record.element,
      reconnect,
    );
    const update = (/** @type {ServerConnection} */ { session, server }) => {
      setAttribute(state, "data-status", server.status);
      setText(state, STATUS_LABELS[server.status] ?? singleLine(server.status ?? "", 30));
      setText(who, sessionName(this.store, session.id));
      setFactRow(facts, this.#facts(session, server));
      const address = loginLink(server);
      login.hidden = !address;
      setAttribute(login, "href", address?.href);
      setText(login, address?.label ?? "");
      error.hidden = !server.lastError;
      setText(error, truncate(server.lastError ?? "", 600));
      record.update(server, sessionName(this.store, session.id));
      setAttribute(reconnect, "aria-description", `in ${sessionName(this.store, session.id)}`);
    };
    return { element, update };
  }

  /**
   * @param {Wire.Session} session
   * @param {Wire.Server} server
   */
  #facts(session, server) {
    const health = server.healthStatus;
    const receivedAt = this.#received.get(session.id)?.at ?? serverNow();
    const nextRetryIn = (server.nextRetryMs ?? NaN) - (serverNow() - receivedAt);
    return [
      server.status === "not_connected" && (isOwnSession(session) ? "connects on use" : "connects when needed"),
      server.connected && server.connectedAt && `since ${formatTime(server.connectedAt)}`,
      server.status === "reconnecting" && server.reconnectAttempt && `try ${server.reconnectAttempt}`,
      server.status === "reconnecting" && Number.isFinite(nextRetryIn) && `next in ${formatCoarse(nextRetryIn)}`,
      server.connected &&
        health &&
        health !== "unknown" &&
        (server.consecutiveHealthFailures ? `${health} (${server.consecutiveHealthFailures} failures)` : health),
      server.process?.pid && `pid ${server.process.pid}`,
      server.process && server.process.restarts > 0 && `restarts ${server.process.restarts}`,
      server.connected && server.protocolVersion,
      server.connected && Number.isFinite(server.tools) && `${server.tools} tools`,
    ];
  }

  /**
   * @param {string} session
   * @param {HTMLButtonElement} button
   */
  async #reconnect(session, button) {
    button.disabled = true;
    try {
      await postJson("/console/reconnect", { session, server: this.name });
    } catch (error) {
      showToast(messageOf(error), { kind: "error" });
    }
    button.disabled = false;
  }

  #updateStderr() {
    if (this.#logsSeen === this.store.logs) return;
    this.#logsSeen = this.store.logs;
    const lines = this.store.logs
      .filter((log) => log.server === this.name && log.source === "stderr")
      .slice(-STDERR_LINES);
    this.stderrSection.hidden = lines.length === 0;
    const isAtEnd = this.stderr.scrollHeight - this.stderr.scrollTop - this.stderr.clientHeight < SCROLL_END_PX;
    reconcile(this.stderr, lines, objectKey, (log) => ({ element: logLine(log) }));
    if (isAtEnd) this.stderr.scrollTop = this.stderr.scrollHeight;
  }
}
