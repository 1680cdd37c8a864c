// Calls that took longer than their caller waited.

import { getJson, postJson } from "../net/console-api.js";
import { now } from "../state/server-clock.js";
import { emptyState, listView } from "../ui/controls.js";
import { bdi, fill, h, nameOf, reconcile, setAttribute, setText } from "../ui/dom.js";
import { setFacts } from "../ui/fact-row.js";
import { capital, millis, roughly } from "../text/format.js";
import { sessionName } from "../state/session-names.js";
import { notice } from "../ui/toast.js";
import { resultView } from "../ui/result-view.js";
import { progressText } from "./waterfall/request-row.js";
import { list } from "../state/store.js";
import { clipped, oneLine } from "../text/display-text.js";

export class Tasks {
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
    Object.assign(this, listView("Tasks", this.empty));
  }

  show() {
    this.update(new Set(["sessions"]));
  }

  update(topics) {
    if (!topics.has("sessions")) return;
    const entries = [...this.store.sessions.values()]
      .flatMap((session) => list(session.tasks).map((task) => ({ session: session.id, task })))
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

  constructor(store, { session, task }) {
    Object.assign(this, { store, session, taskId: task.taskId });
    this.state = h("span", { class: "badge small" });
    this.facts = h("div", { class: "facts" });
    this.bar = h("progress", { class: "progress", "aria-label": `Progress of ${task.toolName}` });
    this.words = bdi("", { class: "muted small" });
    this.progress = h("div", { class: "call-progress" }, this.bar, this.words);
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
      h("code", { class: "item-title" }, nameOf(task.toolName)),
      this.state,
    );
    this.element = h(
      "li",
      { class: "item", testid: "task-row", dataset: { id: task.taskId } },
      h("div", { class: "item-main" }, head, this.facts, this.progress, this.error),
      h("div", { class: "actions" }, this.toggle, this.cancel),
      this.result,
    );
  }

  update({ task }) {
    const isWorking = task.status === "working";
    setAttribute(this.element, "data-status", task.status);
    setAttribute(this.state, "data-status", task.status);
    setText(this.state, capital(oneLine(task.status ?? "", 30)));
    setFacts(this.facts, this.#facts(task, isWorking));
    this.progress.hidden = !isWorking;
    const { progress, total } = task.progress ?? {};
    if (Number.isFinite(total) && total > 0 && Number.isFinite(progress)) {
      this.bar.max = total;
      this.bar.value = Math.min(progress, total);
    } else this.bar.removeAttribute("value");
    setText(this.words, progressText(task.progress) || (task.statusMessage ?? ""));
    this.error.hidden = !task.error;
    setText(this.error, clipped(task.error ?? "", 600));
    this.cancel.hidden = !isWorking;
    this.toggle.hidden = !task.hasResult;
  }

  #facts(task, isWorking) {
    const age = now() - millis(task.createdAt);
    const left = millis(task.createdAt) + task.ttl - now();
    return [
      task.server,
      sessionName(this.store, this.session),
      isWorking
        ? `for ${roughly(age)}`
        : `took ${roughly(millis(task.lastUpdatedAt) - millis(task.createdAt))}, began ${roughly(age)} ago`,
      isWorking && Number.isFinite(left) && `${roughly(left)} left`,
    ];
  }

  async #cancel() {
    this.cancel.disabled = true;
    try {
      await postJson("/console/cancel-task", { session: this.session, taskId: this.taskId });
    } catch (error) {
      notice(error.message, { kind: "error" });
    }
    this.cancel.disabled = false;
  }

  async #toggle() {
    this.#isOpen = !this.#isOpen;
    this.result.hidden = !this.#isOpen;
    setAttribute(this.toggle, "aria-expanded", String(this.#isOpen));
    setText(this.toggle, this.#isOpen ? "Hide result" : "Show result");
    if (!this.#isOpen) return;
    fill(this.result, h("p", { class: "muted" }, "Loading…"));
    try {
      const { result, isCut } = await getJson("/console/task", { session: this.session, id: this.taskId });
      fill(
        this.result,
        result === null ? h("p", { class: "muted" }, "No result is kept.") : resultView(result),
        isCut && h("p", { class: "muted small" }, "The rest was cut."),
      );
    } catch (error) {
      fill(this.result, h("p", { class: "error-text" }, bdi(error.message)));
    }
  }
}
