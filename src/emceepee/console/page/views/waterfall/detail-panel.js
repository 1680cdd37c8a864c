// One request in full, beside the waterfall.

import { getJson } from "../../net/console-api.js";
import { now } from "../../state/server-clock.js";
import { iconButton } from "../../ui/controls.js";
import { copyText } from "../../ui/clipboard.js";
import { bdi, fill, h, nameOf } from "../../ui/dom.js";
import { duration, fullTime, preciseTime, time } from "../../text/format.js";
import { icon } from "../../ui/icons.js";
import { jsonBlock } from "../../ui/json-view.js";
import { logLine } from "../../ui/log-line.js";
import { longText } from "../../ui/expandable-text.js";
import { sessionChip } from "../../state/session-names.js";
import { TYPES, statusName } from "../../state/request-phases.js";
import { resultView } from "../../ui/result-view.js";
import { progressText } from "./request-row.js";
import { list } from "../../state/store.js";
import { oneLine } from "../../text/display-text.js";
import { phaseTable } from "./phase-table.js";

const AGAIN_MS = 1000; // a request that changes often is asked for at most this often

export class DetailPanel {
  #row = null;
  #asked = null;
  #timer = null;

  constructor(store, { onClose }) {
    this.store = store;
    this.onClose = onClose;
    this.closeButton = iconButton("close", "Close (Esc)", { onclick: () => this.close() });
    this.title = h("h2", { class: "detail-title" });
    this.facts = h("div", { class: "detail-facts" });
    this.timing = h("div", { class: "detail-section" });
    this.body = h("div", { class: "detail-rest" });
    this.copy = h(
      "button",
      { type: "button", class: "button small", testid: "copy-call", onclick: () => this.#copyCall() },
      icon("copy", 16),
      "Copy as tool call",
    );
    const head = h("header", { class: "detail-head" }, this.title, this.closeButton);
    const inside = h(
      "div",
      { class: "detail-body", tabindex: "0", role: "group", "aria-label": "Request details" },
      this.facts,
      this.timing,
      this.body,
    );
    this.element = h(
      "aside",
      { class: "detail", testid: "request-detail", "aria-label": "Request", hidden: true },
      head,
      inside,
    );
  }

  get isOpen() {
    return this.#row !== null;
  }

  open(row, { takesFocus = false } = {}) {
    const isOther = row.id !== this.#row?.id;
    this.#row = row;
    this.element.hidden = false;
    if (isOther) {
      fill(this.body, h("p", { class: "muted" }, "Loading…"));
      this.element.querySelector(".detail-body").scrollTop = 0;
      this.answer = null;
      this.copy.disabled = true;
      this.#ask();
    }
    this.#renderFacts();
    if (takesFocus) this.closeButton.focus();
  }

  /** Whether there was something to close. */
  close() {
    if (!this.#row) return false;
    this.#row = null;
    this.element.hidden = true;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.onClose();
    return true;
  }

  update(topics) {
    if (!this.#row || !topics.has("rows")) return;
    const row = this.store.rows.get(this.#row.id);
    if (!row || row === this.#row) return;
    this.#row = row;
    this.#renderFacts();
    this.#timer ??= setTimeout(
      () => {
        this.#timer = null;
        this.#ask();
      },
      AGAIN_MS * (row.status === "pending" ? 1 : 0.1),
    );
  }

  tick() {
    if (this.#row?.status === "pending") this.#renderFacts();
  }

  async #ask() {
    const row = this.#row;
    if (!row) return;
    const asked = (this.#asked = Symbol(row.id));
    try {
      const answer = await getJson("/console/request", { session: row.session, id: row.id });
      if (this.#asked === asked && this.#row) this.#renderAnswer(answer);
    } catch (error) {
      if (this.#asked === asked && this.#row) fill(this.body, h("p", { class: "muted" }, error.message));
    }
  }

  #renderFacts() {
    const row = this.#row;
    fill(this.title, longText(row.name ?? "", 300));
    const took = duration((row.endedAt ?? now()) - row.startedAt);
    fill(
      this.facts,
      h(
        "p",
        { class: "fact-line" },
        h("span", { class: "badge", dataset: { status: row.status } }, oneLine(statusName(row), 30)),
        h("strong", null, took),
        h(
          "span",
          { class: "muted", title: fullTime(row.startedAt) },
          `${time(row.startedAt)} · ${TYPES[row.type] ?? row.type}`,
        ),
      ),
      h(
        "p",
        { class: "fact-line" },
        row.server && h("a", { class: "chip", href: `#servers/${encodeURIComponent(row.server)}` }, nameOf(row.server)),
        sessionChip(this.store, row.session),
        row.taskId && h("a", { class: "chip", href: "#tasks" }, "Task"),
        row.status === "pending" && row.progress && h("span", { class: "muted" }, bdi(progressText(row.progress))),
      ),
      row.error && h("p", { class: "error-text", role: "note" }, longText(row.error, 2000)),
    );
    fill(this.timing, phaseTable(row, now()));
  }

  #renderAnswer(answer) {
    this.answer = answer;
    this.copy.disabled = false;
    const { args, result, logs, isCut } = answer;
    fill(
      this.body,
      section(
        "Arguments",
        h(
          "div",
          { testid: "detail-args" },
          args === null || args === undefined ? none("None") : jsonBlock(args, "Arguments"),
        ),
        this.copy,
      ),
      section(
        "Result",
        h(
          "div",
          { testid: "detail-result" },
          result === null || result === undefined
            ? none(this.#row.status === "pending" ? "Not yet" : "None kept")
            : resultView(result),
        ),
        isCut && h("span", { class: "tag" }, "cut"),
      ),
      section(
        "Log lines",
        h(
          "div",
          { testid: "detail-logs", class: "log-lines" },
          list(logs).length === 0 ? none("None") : list(logs).map((log) => logLine(log)),
        ),
      ),
      h(
        "p",
        { class: "muted small" },
        "Id ",
        h("code", null, this.#row.id),
        ` · began ${preciseTime(this.#row.startedAt)}`,
      ),
    );
  }

  #copyCall() {
    copyText(JSON.stringify(asToolCall(this.#row, this.answer?.args), null, 2), "Tool call");
  }
}

/** The call that a model would make to do the same again. */
export function asToolCall(row, args) {
  const given = args ?? {};
  if (row.type === "own_tool" || row.type === "protocol") return { name: row.name, arguments: given };
  if (row.type === "resource_read")
    return { name: "read_resource", arguments: { server: row.server, uri: given.uri ?? row.name } };
  if (row.type === "prompt_get") {
    return {
      name: "get_prompt",
      arguments: { server: row.server, name: row.name, arguments: given.arguments ?? given },
    };
  }
  return { name: "execute_tool", arguments: { server: row.server, tool: row.name, args: given } };
}

const section = (title, content, ...extras) =>
  h("section", { class: "detail-section" }, h("div", { class: "section-head" }, h("h3", null, title), extras), content);
const none = (text) => h("p", { class: "muted" }, text);
