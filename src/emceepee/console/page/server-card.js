// One server: how it is, in each session; what it writes to stderr; which tools it has.

import { postJson } from "./api.js";
import { bdi, h, nameOf, reconcile, setAttribute, setText } from "./dom.js";
import { setFacts } from "./facts.js";
import { roughly, time } from "./format.js";
import { now } from "./clock.js";
import { logLine } from "./log-line.js";
import { isOwnSession, sessionName } from "./names.js";
import { notice } from "./notice.js";
import { ToolsPanel } from "./tools-panel.js";
import { clipped, oneLine } from "./text.js";

const STDERR_LINES = 60;
const AT_THE_END_PX = 24;
// The first that any session is in stands for the whole: what needs attention before what is well.
const ORDER = ["error", "reconnecting", "connecting", "connected", "disconnected", "not_connected"];
export const STATES = {
  connecting: "Connecting",
  connected: "Connected",
  disconnected: "Disconnected",
  reconnecting: "Reconnecting",
  error: "Error",
  not_connected: "Not connected",
};

export class ServerCard {
  #logsSeen = null;
  #heard = new Map();

  constructor(store, name, toolbox) {
    this.store = store;
    this.name = name;
    this.badge = h("span", { class: "badge" });
    this.url = h("p", { class: "address code muted" });
    this.links = h("ul", { class: "links" });
    this.stderr = h("div", {
      class: "log-lines stderr",
      testid: "server-stderr",
      tabindex: "0",
      role: "log",
      "aria-label": `Standard error of ${name}`,
      "aria-live": "off",
    });
    this.stderrSection = h("section", { class: "stderr-section" }, h("h3", null, "Standard error"), this.stderr);
    this.tools = new ToolsPanel(name, toolbox);
    const link = h("a", { href: `#servers/${encodeURIComponent(name)}` }, nameOf(name));
    this.element = h(
      "article",
      { class: "card server-card", testid: "server-card", dataset: { name } },
      h("header", { class: "card-head" }, h("h2", null, link), this.badge),
      this.url,
      this.links,
      this.stderrSection,
      this.tools.element,
    );
  }

  update({ links }) {
    const status =
      ORDER.find((each) => links.some(({ server }) => server.status === each)) ?? links[0]?.server.status ?? "unknown";
    setAttribute(this.element, "data-status", status);
    setAttribute(this.badge, "data-status", status);
    setText(this.badge, STATES[status] ?? oneLine(status, 30));
    setText(this.url, clipped(links[0]?.server.url ?? "", 300));
    setAttribute(this.url, "title", links[0]?.server.url);
    for (const { session, server } of links) this.#note(session.id, server);
    reconcile(
      this.links,
      links,
      ({ session }) => session.id,
      ({ session }) => this.#line(session.id),
    );
    this.#updateStderr();
  }

  /** A countdown begins when it was told, not at each drawing. */
  #note(sessionId, server) {
    if (this.#heard.get(sessionId)?.server !== server) this.#heard.set(sessionId, { server, at: now() });
  }

  #line(sessionId) {
    const state = h("span", { class: "badge small" });
    const who = bdi("", { class: "link-session" });
    const facts = h("div", { class: "facts" });
    const error = h("p", { class: "error-text small" });
    const reconnect = h(
      "button",
      { type: "button", class: "button small", onclick: () => this.#reconnect(sessionId, reconnect) },
      "Reconnect",
    );
    const element = h(
      "li",
      { class: "link" },
      h("div", { class: "link-what" }, h("span", { class: "link-head" }, who, state), facts, error),
      reconnect,
    );
    const update = ({ session, server }) => {
      setAttribute(state, "data-status", server.status);
      setText(state, STATES[server.status] ?? oneLine(server.status ?? "", 30));
      setText(who, sessionName(this.store, session.id));
      setFacts(facts, this.#facts(session, server));
      error.hidden = !server.lastError || server.connected;
      setText(error, clipped(server.lastError ?? "", 600));
      setAttribute(reconnect, "aria-description", `in ${sessionName(this.store, session.id)}`);
    };
    return { element, update };
  }

  #facts(session, server) {
    const health = server.healthStatus;
    const nextRetryIn = server.nextRetryMs - (now() - this.#heard.get(session.id).at);
    return [
      server.status === "not_connected" && (isOwnSession(session) ? "connects on use" : "connects when needed"),
      server.connected && server.connectedAt && `since ${time(server.connectedAt)}`,
      server.status === "reconnecting" && server.reconnectAttempt && `try ${server.reconnectAttempt}`,
      server.status === "reconnecting" && Number.isFinite(nextRetryIn) && `next in ${roughly(nextRetryIn)}`,
      server.connected &&
        health &&
        health !== "unknown" &&
        (server.consecutiveHealthFailures ? `${health} (${server.consecutiveHealthFailures} failures)` : health),
      server.process?.pid && `pid ${server.process.pid}`,
      server.process?.restarts > 0 && `restarts ${server.process.restarts}`,
      server.connected && server.protocolVersion,
      server.connected && Number.isFinite(server.tools) && `${server.tools} tools`,
    ];
  }

  async #reconnect(session, button) {
    button.disabled = true;
    try {
      await postJson("/console/reconnect", { session, server: this.name });
    } catch (error) {
      notice(error.message, { kind: "error" });
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
    const isAtEnd = this.stderr.scrollHeight - this.stderr.scrollTop - this.stderr.clientHeight < AT_THE_END_PX;
    reconcile(this.stderr, lines, keyOf, (log) => ({ element: logLine(log) }));
    if (isAtEnd) this.stderr.scrollTop = this.stderr.scrollHeight;
  }
}

const keys = new WeakMap();
let keyCount = 0;

/** Log lines have no ids, and two can say the same in the same millisecond: the object is the identity. */
export function keyOf(object) {
  if (!keys.has(object)) keys.set(object, (keyCount += 1));
  return keys.get(object);
}
