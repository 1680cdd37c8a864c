// The sessions of emceepee's callers.

import { messageOf } from "../lib/errors.js";
import { formatCoarse, formatFullTime, pluralize, toMillis } from "../lib/format.js";
import { asArray } from "../lib/safe-json.js";
import { postJson } from "../net/console-api.js";
import { serverNow } from "../state/server-clock.js";
import { isOwnSession, sessionName, shortId } from "../state/session-names.js";
import { connectHint } from "../ui/connect-hint.js";
import { emptyState, listView } from "../ui/controls.js";
import { confirmAction } from "../ui/dialog.js";
import { bdi, h, reconcile, setAttribute, setText } from "../ui/dom.js";
import { setFactRow } from "../ui/fact-row.js";
import { showToast } from "../ui/toast.js";

/**
 * @import { Store, Topics } from "../state/store.js"
 */

export class SessionsView {
  /**
   * Requests per session.
   * @type {Map<string, number>}
   */
  counts = new Map();

  /**
   * @param {Store} store
   * @param {{ showRequests: (sessionId: string) => void }} actions
   */
  constructor(store, { showRequests }) {
    this.store = store;
    this.showRequests = showRequests;
    this.empty = emptyState("No sessions yet.", ...connectHint());
    const { element, rows } = listView("Sessions", this.empty);
    this.element = element;
    this.rows = rows;
  }

  show() {
    this.update(new Set(["sessions"]));
  }

  /** @param {Topics} topics */
  update(topics) {
    if (!topics.has("sessions") && !topics.has("rows")) return;
    const sessions = [...this.store.sessions.values()].sort((a, b) => (a.openedAt < b.openedAt ? 1 : -1));
    this.empty.hidden = sessions.length > 0 || !this.store.isReady;
    this.counts = new Map();
    for (const row of this.store.rows.ordered) this.counts.set(row.session, (this.counts.get(row.session) ?? 0) + 1);
    reconcile(
      this.rows,
      sessions,
      ({ id }) => id,
      ({ id }) => this.#row(id),
    );
  }

  /**
   * @param {string} id
   * @returns {import("../ui/dom.js").Part}
   */
  #row(id) {
    const name = bdi("", { class: "item-title" });
    const state = h("span", { class: "badge small" });
    const facts = h("div", { class: "fact-row" });
    const requests = h(
      "button",
      { type: "button", class: "button small", onclick: () => this.showRequests(id) },
      "Show requests",
    );
    const end = h("button", { type: "button", class: "button small", onclick: () => this.#end(id) }, "End session");
    const head = h("div", { class: "item-head" }, name, state);
    const element = h(
      "li",
      { class: "item", testid: "session-row", dataset: { id } },
      h("div", { class: "item-main" }, head, facts),
      h("div", { class: "actions" }, requests, end),
    );
    const update = (/** @type {Wire.Session} */ session) => {
      setText(name, sessionName(this.store, id));
      setAttribute(name, "title", `Session ${id}`);
      setAttribute(state, "data-status", session.isAwake ? "awake" : "asleep");
      setText(state, session.isAwake ? "Awake" : "Asleep");
      setFactRow(facts, this.#facts(session));
      setAttribute(facts, "title", `Opened ${formatFullTime(session.openedAt)}`);
      end.hidden = !session.canEnd;
    };
    return { element, update };
  }

  /** @param {Wire.Session} session */
  #facts(session) {
    const connected = asArray(session.servers).filter((server) => server.connected).length;
    const working = asArray(session.tasks).filter((task) => task.status === "working").length;
    const open = asArray(session.questions).length;
    return [
      session.transport === "stdio" ? "stdio" : "HTTP",
      `opened ${formatCoarse(serverNow() - toMillis(session.openedAt))} ago`,
      pluralize(this.counts.get(session.id) ?? 0, "request"),
      `${connected} of ${pluralize(asArray(session.servers).length, "server")} connected`,
      working > 0 && pluralize(working, "working task"),
      open > 0 && pluralize(open, "open question"),
      `id ${shortId(session.id)}`,
    ];
  }

  /** @param {string} id */
  async #end(id) {
    const name = sessionName(this.store, id);
    const isOwn = isOwnSession(this.store.sessions.get(id));
    const whose = isOwn ? "It is the session of this page. " : "";
    const text = `${whose}Its server connections, tasks, timers and questions end with it.`;
    if (!(await confirmAction(`End ${name}?`, text, "End session"))) return;
    try {
      await postJson("/console/end-session", { session: id });
      showToast(`${name} was ended.`);
    } catch (error) {
      showToast(messageOf(error), { kind: "error" });
    }
  }

  tick() {
    this.update(new Set(["sessions"]));
  }
}
