// Calls that became tasks because they took long.

import { singleLine, truncate } from "../lib/display-text.js";
import { messageOf } from "../lib/errors.js";
import { capitalize, formatCoarse, toMillis } from "../lib/format.js";
import { asArray } from "../lib/safe-json.js";
import { getJson, postJson } from "../net/console-api.js";
import { serverNow } from "../state/server-clock.js";
import { sessionName } from "../state/session-names.js";
import { emptyState, listView } from "../ui/controls.js";
import { bdi, h, nameLabel, reconcile, replaceContent, setAttribute, setText } from "../ui/dom.js";
import { setFactRow } from "../ui/fact-row.js";
import { ProgressView } from "../ui/progress.js";
import { resultView } from "../ui/result-view.js";
import { showToast } from "../ui/toast.js";

/**
 * @import { Store, Topics } from "../state/store.js"
 */

export class TasksView {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.empty = emptyState(
      "No tasks.",
      h(
        "p",
        null,
        "A call that outlives its caller’s patience goes on here as a task, and its result is kept for a while.",
      ),
    );
    const { element, rows } = listView("Tasks", this.empty);
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
      .flatMap((session) => asArray(session.tasks).map((task) => ({ session: session.id, task })))
      .sort((a, b) => (a.task.createdAt < b.task.createdAt ? 1 : -1));
    this.empty.hidden = entries.length > 0 || !this.store.isReady;
    reconcile(
      this.rows,
      entries,
      ({ session, task }) => `${session}/${task.taskId}`,
      (entry) => new TaskRow(this.store, entry),
    );
  }

  tick() {
    this.update(new Set(["sessions"]));
  }
}

class TaskRow {
  #isOpen = false;

  /**
   * @param {Store} store
   * @param {{ session: string, task: Wire.Task }} entry
   */
  constructor(store, { session, task }) {
    this.store = store;
    this.session = session;
    this.taskId = task.taskId;
    this.state = h("span", { class: "badge small" });
    this.facts = h("div", { class: "fact-row" });
    this.progress = new ProgressView(task.toolName);
    this.error = h("p", { class: "error-text small" });
    this.cancel = h("button", { type: "button", class: "button small", onclick: () => this.#cancel() }, "Cancel task");
    this.toggle = h(
      "button",
      { type: "button", class: "button small", "aria-expanded": "false", onclick: () => this.#toggle() },
      "Show result",
    );
    this.result = h("div", { class: "task-result", testid: "task-result", hidden: true });
    const head = h(
      "div",
      { class: "item-head" },
      h("code", { class: "item-title" }, nameLabel(task.toolName)),
      this.state,
    );
    this.element = h(
      "li",
      { class: "item", testid: "task-row", dataset: { id: task.taskId } },
      h("div", { class: "item-main" }, head, this.facts, this.progress.element, this.error),
      h("div", { class: "actions" }, this.toggle, this.cancel),
      this.result,
    );
  }

  /** @param {{ task: Wire.Task }} entry */
  update({ task }) {
    const isWorking = task.status === "working";
    setAttribute(this.element, "data-status", task.status);
    setAttribute(this.state, "data-status", task.status);
    setText(this.state, capitalize(singleLine(task.status ?? "", 30)));
    setFactRow(this.facts, this.#facts(task, isWorking));
    this.progress.element.hidden = !isWorking;
    this.progress.update(task.progress, task.statusMessage);
    this.error.hidden = !task.error;
    setText(this.error, truncate(task.error ?? "", 600));
    this.cancel.hidden = !isWorking;
    this.toggle.hidden = !task.hasResult;
  }

  /**
   * @param {Wire.Task} task
   * @param {boolean} isWorking
   */
  #facts(task, isWorking) {
    const age = serverNow() - toMillis(task.createdAt);
    const left = toMillis(task.createdAt) + task.ttl - serverNow();
    const took = toMillis(task.lastUpdatedAt) - toMillis(task.createdAt);
    return [
      task.server,
      sessionName(this.store, this.session),
      isWorking ? `for ${formatCoarse(age)}` : `took ${formatCoarse(took)}, began ${formatCoarse(age)} ago`,
      isWorking && Number.isFinite(left) && `${formatCoarse(left)} left`,
    ];
  }

  async #cancel() {
    this.cancel.disabled = true;
    try {
      await postJson("/console/cancel-task", { session: this.session, taskId: this.taskId });
    } catch (error) {
      showToast(messageOf(error), { kind: "error" });
    }
    this.cancel.disabled = false;
  }

  async #toggle() {
    this.#isOpen = !this.#isOpen;
    this.result.hidden = !this.#isOpen;
    setAttribute(this.toggle, "aria-expanded", String(this.#isOpen));
    setText(this.toggle, this.#isOpen ? "Hide result" : "Show result");
    if (!this.#isOpen) return;
    replaceContent(this.result, h("p", { class: "muted" }, "Loading…"));
    try {
      const { result, isCut } = await getJson("/console/task", { session: this.session, id: this.taskId });
      replaceContent(
        this.result,
        result === null ? h("p", { class: "muted" }, "No result is kept.") : resultView(result),
        isCut && h("p", { class: "muted small" }, "The rest was cut."),
      );
    } catch (error) {
      replaceContent(this.result, h("p", { class: "error-text" }, bdi(messageOf(error))));
    }
  }
}
