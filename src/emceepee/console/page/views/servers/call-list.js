// The calls made from this tab, running and finished.

import { formatCoarse, formatDuration, formatTime } from "../../lib/format.js";
import { serverNow } from "../../state/server-clock.js";
import { isOwnSession } from "../../state/session-names.js";
import { disclosure } from "../../ui/disclosure.js";
import { h, nameLabel, reconcile, replaceContent, setAttribute, setText } from "../../ui/dom.js";
import { jsonBlock } from "../../ui/json-view.js";
import { ProgressView } from "../../ui/progress.js";
import { resultView } from "../../ui/result-view.js";

/**
 * @import { Call, Calls } from "../../calls/calls.js"
 * @import { Store } from "../../state/store.js"
 */

/** @type {{ [status: string]: string }} */
const STATUS_LABELS = { running: "Running", done: "Done", error: "Error", task: "Task" };

export class CallList {
  /** @type {string | null} */
  #server = null;
  /** @type {string | undefined} */
  #newestKey;

  /**
   * @param {Store} store
   * @param {Calls} calls
   */
  constructor(store, calls) {
    this.store = store;
    this.calls = calls;
    this.rows = h("div", { class: "call-rows" });
    this.clear = h(
      "button",
      { type: "button", class: "button quiet small", onclick: () => calls.clearFinished() },
      "Clear finished",
    );
    const head = h("div", { class: "section-head" }, h("h2", null, "Calls from this tab"), this.clear);
    this.element = h("section", { class: "calls", "aria-label": "Calls from this tab" }, head, this.rows);
    calls.subscribe(() => this.update());
  }

  /** @param {string | null} server */
  showOnly(server) {
    this.#server = server;
    this.update();
  }

  update() {
    const shown = this.calls.all.filter((call) => !this.#server || call.server === this.#server);
    this.element.hidden = shown.length === 0;
    this.element.closest(".view")?.classList.toggle("with-calls", shown.length > 0);
    if (shown[0]?.key !== this.#newestKey) this.#bringIntoView(shown[0]);
    this.clear.hidden = !shown.some((call) => call.status === "done" || call.status === "error");
    reconcile(
      this.rows,
      shown,
      (call) => call.key,
      (call) => new CallRow(this.store, this.calls, call),
    );
  }

  /**
   * Scroll to a call that was just made, even if the list is below the visible part.
   * @param {Call | undefined} newest
   */
  #bringIntoView(newest) {
    const isNew = newest && this.calls.justStarted === newest.key;
    this.#newestKey = newest?.key;
    if (isNew)
      requestAnimationFrame(() =>
        this.rows.firstElementChild?.scrollIntoView({ block: "nearest", behavior: "smooth" }),
      );
  }

  tick() {
    if (this.calls.all.some((call) => call.status === "running" || call.status === "task")) this.update();
  }
}

class CallRow {
  /** @type {Wire.ToolResult | undefined} */
  #shownResult;

  /**
   * @param {Store} store
   * @param {Calls} calls
   * @param {Call} call
   */
  constructor(store, calls, call) {
    this.store = store;
    this.badge = h("span", { class: "badge small" });
    this.elapsed = h("span", { class: "muted small number" });
    this.progress = new ProgressView(call.tool, "call-progress");
    this.questionLink = h("a", { class: "chip attention", href: "#questions" }, "Waits for your answer");
    this.note = h("p", { class: "muted small call-note" });
    this.result = h("div", { class: "call-result", testid: "call-result" });
    this.cancel = h("button", { type: "button", class: "button small", onclick: () => calls.cancel(call) }, "Stop");
    const name = h(
      "span",
      { class: "call-name" },
      h("code", null, nameLabel(call.tool)),
      h("span", { class: "muted small" }, nameLabel(call.server)),
    );
    this.element = h(
      "article",
      { class: "card call-row", testid: "call-row", dataset: { key: call.key } },
      h("header", { class: "card-head" }, name, this.badge, this.elapsed),
      this.progress.element,
      this.questionLink,
      this.note,
      this.result,
      h(
        "div",
        { class: "actions" },
        this.cancel,
        disclosure("Arguments", () => jsonBlock(call.args, `Arguments of ${call.tool}`)),
      ),
    );
  }

  /** @param {Call} call */
  update(call) {
    const isOpen = call.status === "running" || call.status === "task";
    setAttribute(this.element, "data-status", call.status);
    setAttribute(this.badge, "data-status", call.status);
    setText(this.badge, STATUS_LABELS[call.status] ?? call.status);
    const elapsed = (call.endedAt ?? serverNow()) - call.startedAt;
    setText(
      this.elapsed,
      isOpen ? formatCoarse(elapsed) : `${formatDuration(elapsed)} · ${formatTime(call.startedAt)}`,
    );
    this.progress.element.hidden = !isOpen || !call.progress;
    this.progress.update(call.progress);
    this.questionLink.hidden = !(call.status === "running" && this.#hasOpenQuestion(call));
    const note =
      call.status === "running" && !call.isSent
        ? "Waits for a free connection: a browser allows few at once."
        : call.note;
    this.note.hidden = !note;
    setText(this.note, note ?? "");
    this.cancel.hidden = call.status !== "running";
    if (call.result !== this.#shownResult) {
      this.#shownResult = call.result;
      replaceContent(this.result, call.result === undefined ? null : resultView(call.result, `Result of ${call.tool}`));
    }
  }

  /** @param {Call} call */
  #hasOpenQuestion(call) {
    return [...this.store.sessions.values()].some(
      (session) => isOwnSession(session) && session.questions?.some((question) => question.server === call.server),
    );
  }
}
