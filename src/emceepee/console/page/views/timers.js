// Timers of sessions.

import { truncate } from "../lib/display-text.js";
import { messageOf } from "../lib/errors.js";
import { formatCoarse, formatDuration, formatFullTime, pluralize, toMillis } from "../lib/format.js";
import { asArray } from "../lib/safe-json.js";
import { postJson } from "../net/console-api.js";
import { serverNow } from "../state/server-clock.js";
import { sessionName } from "../state/session-names.js";
import { emptyState, listView } from "../ui/controls.js";
import { bdi, h, reconcile, setAttribute, setText } from "../ui/dom.js";
import { setFactRow } from "../ui/fact-row.js";
import { showToast } from "../ui/toast.js";

/**
 * @import { Store, Topics } from "../state/store.js"
 */

/** @type {{ [status: string]: string }} */
const STATUS_LABELS = { active: "Active", expired: "Fired", deleted: "Deleted" };
/** @param {{ timer: Wire.Timer }} entry */
const isActive = ({ timer }) => timer.status === "active";

export class TimersView {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.empty = emptyState("No timers.", h("p", null, "A client sets one with ", h("code", null, "set_timer"), "."));
    const { element, rows } = listView("Timers", this.empty);
    this.element = element;
    this.rows = rows;
  }

  show() {
    this.update(new Set(["sessions"]));
  }

  /** @param {Topics} topics */
  update(topics) {
    if (!topics.has("sessions")) return;
    const entries = [...this.store.sessions.values()]
      .flatMap((session) => asArray(session.timers).map((timer) => ({ session: session.id, timer })))
      .sort((a, b) => Number(isActive(b)) - Number(isActive(a)) || (a.timer.expiresAt < b.timer.expiresAt ? -1 : 1));
    this.empty.hidden = entries.length > 0 || !this.store.isReady;
    reconcile(
      this.rows,
      entries,
      ({ session, timer }) => `${session}/${timer.timerId}`,
      (entry) => this.#row(entry),
    );
  }

  /**
   * @param {{ session: string, timer: Wire.Timer }} entry
   * @returns {import("../ui/dom.js").Part}
   */
  #row({ session, timer: { timerId } }) {
    const message = bdi("", { class: "item-title" });
    const state = h("span", { class: "badge small" });
    const facts = h("div", { class: "fact-row" });
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
    const update = (/** @type {{ timer: Wire.Timer }} */ { timer }) => {
      const isOn = isActive({ timer });
      setText(message, truncate(timer.message ?? "", 500));
      setAttribute(remove, "aria-description", truncate(timer.message ?? "", 100));
      setAttribute(state, "data-status", isOn ? "active" : "inactive");
      setText(state, STATUS_LABELS[timer.status] ?? String(timer.status ?? ""));
      setFactRow(facts, [
        isOn && `fires in ${formatCoarse(toMillis(timer.expiresAt) - serverNow())}`,
        timer.interval ? `every ${formatDuration(timer.durationMs)}` : "once",
        timer.fireCount > 0 && `fired ${pluralize(timer.fireCount, "time")}`,
        sessionName(this.store, session),
      ]);
      setAttribute(facts, "title", formatFullTime(timer.expiresAt));
      remove.hidden = !isOn;
    };
    return { element, update };
  }

  /**
   * @param {string} session
   * @param {string} timerId
   * @param {HTMLButtonElement} button
   */
  async #remove(session, timerId, button) {
    button.disabled = true;
    try {
      await postJson("/console/delete-timer", { session, timerId });
    } catch (error) {
      showToast(messageOf(error), { kind: "error" });
      button.disabled = false;
    }
  }

  tick() {
    this.update(new Set(["sessions"]));
  }
}
