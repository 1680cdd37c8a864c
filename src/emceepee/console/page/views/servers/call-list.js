// The calls made from this tab, running and finished.

import { now } from "../../state/server-clock.js";
import { bdi, fill, h, nameOf, reconcile, setAttribute, setText } from "../../ui/dom.js";
import { duration, roughly, time } from "../../text/format.js";
import { jsonBlock } from "../../ui/json-view.js";
import { isOwnSession } from "../../state/session-names.js";
import { fold, resultView } from "../../ui/result-view.js";
import { progressText } from "../waterfall/request-row.js";

const WORDS = { running: "Running", done: "Done", error: "Error", task: "Task" };

export class CallList {
  #server = null;
  #newestKey;

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

  /** A call just made is shown, also where the list stands below the fold. */
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
  #shownResult;

  constructor(store, calls, call) {
    this.store = store;
    this.badge = h("span", { class: "badge small" });
    this.took = h("span", { class: "muted small number" });
    this.bar = h("progress", { class: "progress", "aria-label": `Progress of ${call.tool}` });
    this.progressText = bdi("", { class: "muted small" });
    this.progress = h("div", { class: "call-progress", testid: "call-progress" }, this.bar, this.progressText);
    this.asks = h("a", { class: "chip attention", href: "#questions" }, "Waits for your answer");
    this.note = h("p", { class: "muted small call-note" });
    this.result = h("div", { class: "call-result", testid: "call-result" });
    this.cancel = h("button", { type: "button", class: "button small", onclick: () => calls.cancel(call) }, "Stop");
    const name = h(
      "span",
      { class: "call-name" },
      h("code", null, nameOf(call.tool)),
      h("span", { class: "muted small" }, nameOf(call.server)),
    );
    this.element = h(
      "article",
      { class: "card call-row", testid: "call-row", dataset: { key: call.key } },
      h("header", { class: "card-head" }, name, this.badge, this.took),
      this.progress,
      this.asks,
      this.note,
      this.result,
      h(
        "div",
        { class: "actions" },
        this.cancel,
        fold("Arguments", () => jsonBlock(call.args, `Arguments of ${call.tool}`)),
      ),
    );
  }

  update(call) {
    const isOpen = call.status === "running" || call.status === "task";
    setAttribute(this.element, "data-status", call.status);
    setAttribute(this.badge, "data-status", call.status);
    setText(this.badge, WORDS[call.status] ?? call.status);
    const took = (call.endedAt ?? now()) - call.startedAt;
    setText(this.took, isOpen ? roughly(took) : `${duration(took)} · ${time(call.startedAt)}`);
    this.progress.hidden = !isOpen || !call.progress;
    if (!this.progress.hidden) this.#showProgress(call.progress);
    this.asks.hidden = !(call.status === "running" && this.#isAsked(call));
    const note =
      call.status === "running" && !call.isSent ? "Waits for a free line: a browser allows few at once." : call.note;
    this.note.hidden = !note;
    setText(this.note, note ?? "");
    this.cancel.hidden = call.status !== "running";
    if (call.result !== this.#shownResult) {
      this.#shownResult = call.result;
      fill(this.result, call.result === undefined ? null : resultView(call.result, `Result of ${call.tool}`));
    }
  }

  #showProgress(progress) {
    const { progress: done, total } = progress;
    if (Number.isFinite(total) && total > 0) {
      this.bar.max = total;
      this.bar.value = Math.min(done, total);
    } else this.bar.removeAttribute("value");
    setText(this.progressText, progressText(progress));
  }

  #isAsked(call) {
    return [...this.store.sessions.values()].some(
      (session) => isOwnSession(session) && session.questions?.some((question) => question.server === call.server),
    );
  }
}
