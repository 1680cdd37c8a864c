// Messages that sessions wait for.

import { postJson } from "../net/console-api.js";
import { now } from "../state/server-clock.js";
import { emptyState, listView } from "../ui/controls.js";
import { bdi, h, reconcile, setAttribute, setText } from "../ui/dom.js";
import { setFacts } from "../ui/fact-row.js";
import { count, duration, fullTime, millis, roughly } from "../text/format.js";
import { sessionName } from "../state/session-names.js";
import { notice } from "../ui/toast.js";
import { list } from "../state/store.js";
import { clipped } from "../text/display-text.js";

const WORDS = { active: "Active", expired: "Fired", deleted: "Deleted" };
const isActive = ({ timer }) => timer.status === "active";

export class Timers {
  constructor(store) {
    this.store = store;
    this.empty = emptyState("No timers.", h("p", null, "A client sets one with ", h("code", null, "set_timer"), "."));
    Object.assign(this, listView("Timers", this.empty));
  }

  show() {
    this.update(new Set(["sessions"]));
  }

  update(topics) {
    if (!topics.has("sessions")) return;
    const entries = [...this.store.sessions.values()]
      .flatMap((session) => list(session.timers).map((timer) => ({ session: session.id, timer })))
      .sort((a, b) => isActive(b) - isActive(a) || (a.timer.expiresAt < b.timer.expiresAt ? -1 : 1));
    this.empty.hidden = entries.length > 0 || !this.store.isReady;
    reconcile(
      this.rows,
      entries,
      ({ session, timer }) => `${session}/${timer.timerId}`,
      (entry) => this.#row(entry),
    );
  }

  #row({ session, timer: { timerId } }) {
    const message = bdi("", { class: "item-title" });
    const state = h("span", { class: "badge small" });
    const facts = h("div", { class: "facts" });
    const remove = h(
      "button",
      { type: "button", class: "button small", onclick: () => this.#remove(session, timerId, remove) },
      "Delete",
    );
    const element = h(
      "li",
      { class: "item", testid: "timer-row", dataset: { id: timerId } },
      h("div", { class: "item-main" }, h("div", { class: "item-head" }, message, state), facts),
      h("div", { class: "actions" }, remove),
    );
    const update = ({ timer }) => {
      const isOn = isActive({ timer });
      setText(message, clipped(timer.message ?? "", 500));
      setAttribute(remove, "aria-description", clipped(timer.message ?? "", 100));
      setAttribute(state, "data-status", isOn ? "active" : "done-with");
      setText(state, WORDS[timer.status] ?? String(timer.status ?? ""));
      setFacts(facts, [
        isOn && `fires in ${roughly(millis(timer.expiresAt) - now())}`,
        timer.interval ? `every ${duration(timer.durationMs)}` : "once",
        timer.fireCount > 0 && `fired ${count(timer.fireCount, "time")}`,
        sessionName(this.store, session),
      ]);
      setAttribute(facts, "title", fullTime(timer.expiresAt));
      remove.hidden = !isOn;
    };
    return { element, update };
  }

  async #remove(session, timerId, button) {
    button.disabled = true;
    try {
      await postJson("/console/delete-timer", { session, timerId });
    } catch (error) {
      notice(error.message, { kind: "error" });
      button.disabled = false;
    }
  }

  tick() {
    this.update(new Set(["sessions"]));
  }
}
