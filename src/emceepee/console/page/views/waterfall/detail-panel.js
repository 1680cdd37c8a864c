// One request in full, beside the waterfall.

import { singleLine } from "../../lib/display-text.js";
import { messageOf } from "../../lib/errors.js";
import { formatDuration, formatFullTime, formatPreciseTime, formatTime } from "../../lib/format.js";
import { asArray } from "../../lib/safe-json.js";
import { getJson } from "../../net/console-api.js";
import { TYPE_LABELS, statusLabel } from "../../state/request-phases.js";
import { serverNow } from "../../state/server-clock.js";
import { iconButton } from "../../ui/controls.js";
import { bdi, h, nameLabel, replaceContent } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { jsonBlock } from "../../ui/json-view.js";
import { logLine } from "../../ui/log-line.js";
import { progressText } from "../../ui/progress.js";
import { resultView } from "../../ui/result-view.js";
import { sessionChip } from "../../ui/session-chip.js";
import { CopyButtons } from "./copy-buttons.js";
import { phaseTable } from "./phase-table.js";

/**
 * @import { Store, Topics } from "../../state/store.js"
 */

const REFRESH_MS = 1000; // minimum interval between queries for a request that changes often

export class DetailPanel {
  /** @type {Wire.RequestRow | null} */
  #row = null;
  /** @type {symbol | null} */
  #lastRequest = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {Wire.RequestDetail | null} */
  #answer = null;

  /**
   * @param {Store} store
   * @param {{ onClose: () => void }} listeners
   */
  constructor(store, { onClose }) {
    this.store = store;
    this.onClose = onClose;
    this.closeButton = iconButton("close", "Close (Esc)", { onclick: () => this.close() });
    this.title = h("h2", { class: "detail-title" });
    this.facts = h("div", { class: "detail-facts" });
    this.timing = h("div", { class: "detail-section" });
    this.body = h("div", { class: "detail-content" });
    this.copy = new CopyButtons();
    const head = h("header", { class: "detail-head" }, this.title, this.closeButton);
    this.scroller = h(
      "div",
      { class: "detail-body", tabindex: "0", role: "group", "aria-label": "Request details" },
      this.facts,
      this.copy.element,
      this.timing,
      this.body,
    );
    this.element = h(
      "aside",
      { class: "detail", testid: "request-detail", "aria-label": "Request", hidden: true },
      head,
      this.scroller,
    );
  }

  get isOpen() {
    return this.#row !== null;
  }

  /**
   * @param {Wire.RequestRow} row
   * @param {{ takesFocus?: boolean }} [options]
   */
  open(row, { takesFocus = false } = {}) {
    const isOther = row.id !== this.#row?.id;
    this.#row = row;
    this.element.hidden = false;
    if (isOther) {
      replaceContent(this.body, h("p", { class: "muted" }, "Loading…"));
      this.scroller.scrollTop = 0;
      this.#answer = null;
      this.#load();
    }
    this.#renderFacts(row);
    if (takesFocus) this.closeButton.focus();
  }

  /** Whether a panel was open. */
  close() {
    if (!this.#row) return false;
    this.#row = null;
    this.element.hidden = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.onClose();
    return true;
  }

  /** @param {Topics} topics */
  update(topics) {
    if (!this.#row || !topics.has("rows")) return;
    const row = this.store.rows.get(this.#row.id);
    if (!row || row === this.#row) return;
    this.#row = row;
    this.#renderFacts(row);
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.#load();
      },
      REFRESH_MS * (row.status === "pending" ? 1 : 0.1),
    );
  }

  tick() {
    if (this.#row?.status === "pending") this.#renderFacts(this.#row);
  }

  async #load() {
    const row = this.#row;
    if (!row) return;
    const asked = (this.#lastRequest = Symbol(row.id));
    try {
      const answer = await getJson("/console/request", { session: row.session, id: row.id });
      if (this.#lastRequest === asked && this.#row) this.#renderAnswer(this.#row, answer);
    } catch (error) {
      if (this.#lastRequest === asked && this.#row)
        replaceContent(this.body, h("p", { class: "muted" }, messageOf(error)));
    }
  }

  /** @param {Wire.RequestRow} row */
  #renderFacts(row) {
    this.copy.update(row, this.#answer);
    replaceContent(this.title, expandableText(row.name ?? "", 300));
    const took = formatDuration((row.endedAt ?? serverNow()) - row.startedAt);
    replaceContent(
      this.facts,
      h(
        "p",
        { class: "detail-row" },
        h("span", { class: "badge", dataset: { status: row.status } }, singleLine(statusLabel(row), 30)),
        h("strong", null, took),
        h(
          "span",
          { class: "muted", title: formatFullTime(row.startedAt) },
          `${formatTime(row.startedAt)} · ${TYPE_LABELS[row.type] ?? row.type}`,
        ),
      ),
      h(
        "p",
        { class: "detail-row" },
        row.server &&
          h("a", { class: "chip", href: `#servers/${encodeURIComponent(row.server)}` }, nameLabel(row.server)),
        sessionChip(this.store, row.session),
        row.taskId && h("a", { class: "chip", href: "#tasks" }, "Task"),
        row.status === "pending" && row.progress && h("span", { class: "muted" }, bdi(progressText(row.progress))),
      ),
      row.error && h("p", { class: "error-text", role: "note" }, expandableText(row.error, 2000)),
    );
    replaceContent(this.timing, phaseTable(row, serverNow()));
  }

  /**
   * @param {Wire.RequestRow} row
   * @param {Wire.RequestDetail} answer
   */
  #renderAnswer(row, answer) {
    this.#answer = answer;
    this.copy.update(row, answer);
    const { args, result, logs, isCut } = answer;
    replaceContent(
      this.body,
      section(
        "Arguments",
        h(
          "div",
          { testid: "detail-args" },
          args === null || args === undefined ? none("None") : jsonBlock(args, "Arguments"),
        ),
      ),
      section(
        "Result",
        h(
          "div",
          { testid: "detail-result" },
          result === null || result === undefined
            ? none(row.status === "pending" ? "Not yet" : "None kept")
            : resultView(result),
        ),
        isCut && h("span", { class: "tag" }, "cut"),
      ),
      section(
        "Log lines",
        h(
          "div",
          { testid: "detail-logs", class: "log-lines" },
          asArray(logs).length === 0 ? none("None") : asArray(logs).map((log) => logLine(log)),
        ),
      ),
      h("p", { class: "muted small" }, "Id ", h("code", null, row.id), ` · began ${formatPreciseTime(row.startedAt)}`),
    );
  }
}

/**
 * @param {string} title
 * @param {Element} content
 * @param {...import("../../ui/dom.js").Children} extras
 */
const section = (title, content, ...extras) =>
  h("section", { class: "detail-section" }, h("div", { class: "section-head" }, h("h3", null, title), extras), content);
/** @param {string} text */
const none = (text) => h("p", { class: "muted" }, text);
