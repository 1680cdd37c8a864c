// Who is connected to emceepee.

import { postJson } from "../net/console-api.js";
import { now } from "../state/server-clock.js";
import { emptyState, listView } from "../ui/controls.js";
import { confirmed } from "../ui/dialog.js";
import { bdi, h, reconcile, setAttribute, setText } from "../ui/dom.js";
import { setFacts } from "../ui/fact-row.js";
import { count, fullTime, millis, roughly } from "../text/format.js";
import { connectHint } from "../ui/connect-hint.js";
import { isOwnSession, sessionName, shortId } from "../state/session-names.js";
import { notice } from "../ui/toast.js";
import { list } from "../state/store.js";

export class Sessions {
  constructor(store, { showRequests }) {
    this.store = store;
    this.showRequests = showRequests;
    this.empty = emptyState("No sessions yet.", ...connectHint());
    Object.assign(this, listView("Sessions", this.empty));
  }

  show() {
    this.update(new Set(["sessions"]));
  }

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

  #row(id) {
    const name = bdi("", { class: "item-title" });
    const state = h("span", { class: "badge small" });
    const facts = h("div", { class: "facts" });
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
    const update = (session) => {
      setText(name, sessionName(this.store, id));
      setAttribute(name, "title", `Session ${id}`);
      setAttribute(state, "data-status", session.isAwake ? "awake" : "asleep");
      setText(state, session.isAwake ? "Awake" : "Asleep");
      setFacts(facts, this.#facts(session));
      setAttribute(facts, "title", `Opened ${fullTime(session.openedAt)}`);
      end.hidden = !session.canEnd;
    };
    return { element, update };
  }

  #facts(session) {
    const connected = list(session.servers).filter((server) => server.connected).length;
    const working = list(session.tasks).filter((task) => task.status === "working").length;
    const open = list(session.questions).length;
    return [
      session.transport === "stdio" ? "stdio" : "HTTP",
      `opened ${roughly(now() - millis(session.openedAt))} ago`,
      count(this.counts.get(session.id) ?? 0, "request"),
      `${connected} of ${count(list(session.servers).length, "server")} connected`,
      working > 0 && count(working, "working task"),
      open > 0 && count(open, "open question"),
      `id ${shortId(session.id)}`,
    ];
  }

  async #end(id) {
    const name = sessionName(this.store, id);
    const isOwn = isOwnSession(this.store.sessions.get(id));
    const whose = isOwn ? "It is the session of this page. " : "";
    const words = `${whose}Its server connections, tasks, timers and questions end with it.`;
    if (!(await confirmed(`End ${name}?`, words, "End session"))) return;
    try {
      await postJson("/console/end-session", { session: id });
      notice(`${name} was ended.`);
    } catch (error) {
      notice(error.message, { kind: "error" });
    }
  }

  tick() {
    this.update(new Set(["sessions"]));
  }
}
