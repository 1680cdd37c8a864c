// A form to call a tool, with its arguments as fields or as one JSON document.

import { SchemaForm } from "../../forms/schema-form.js";
import { messageOf } from "../../lib/errors.js";
import { h, setText } from "../../ui/dom.js";
import { prettyJson } from "../../ui/json-view.js";

const TIMEOUTS = [
  [10_000, "10 seconds"],
  [60_000, "1 minute"],
  [120_000, "2 minutes"],
  [900_000, "15 minutes"],
];
const DEFAULT_TIMEOUT_MS = 120_000;
let formCount = 0;

export class ToolForm {
  #isRaw = false;

  /**
   * @param {Wire.Tool} tool
   * @param {(args: object, timeoutMs: number) => void} onCall
   */
  constructor(tool, onCall) {
    formCount += 1;
    this.onCall = onCall;
    this.form = new SchemaForm(tool.inputSchema, { isMultiline: true });
    const id = `raw${formCount}`;
    this.raw = h("textarea", { id, class: "input code", rows: "6", spellcheck: "false", autocomplete: "off" });
    this.rawPart = h("div", { class: "field", hidden: true }, h("label", { for: id }, "Arguments as JSON"), this.raw);
    this.problem = h("p", { class: "field-problem", role: "alert", hidden: true });
    this.mode = h(
      "button",
      { type: "button", class: "button quiet small", onclick: () => this.#toggleMode() },
      "Edit as JSON",
    );
    this.timeout = h(
      "select",
      { class: "input select small", "aria-label": "Wait for the answer up to" },
      TIMEOUTS.map(([ms, text]) =>
        h("option", { value: ms, selected: ms === DEFAULT_TIMEOUT_MS }, `Wait up to ${text}`),
      ),
    );
    this.emptyHint = this.form.isEmpty && h("p", { class: "muted" }, "This tool takes no arguments.");
    this.element = h(
      "form",
      { class: "tool-form", testid: "tool-form", novalidate: true, "aria-label": `Call ${tool.name}` },
      this.emptyHint,
      this.form.element,
      this.rawPart,
      this.problem,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "submit", class: "button primary" }, "Call"),
        this.timeout,
        this.mode,
      ),
    );
    this.element.addEventListener("submit", (event) => this.#submit(event));
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.element.requestSubmit();
    });
    if (!this.form.isFormable) this.#toggleMode();
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault();
    this.#showProblem(null);
    const args = this.#isRaw ? this.#rawArguments() : this.form.read();
    if (args) this.onCall(args, Number(this.timeout.value));
  }

  /** @returns {{ [name: string]: any } | null} */
  #rawArguments() {
    try {
      const args = JSON.parse(this.raw.value.trim() || "{}");
      if (typeof args === "object" && args !== null && !Array.isArray(args)) return args;
      this.#showProblem("Write a JSON object: {…}.");
    } catch (error) {
      this.#showProblem(`This is not JSON: ${messageOf(error)}.`);
    }
    this.raw.focus();
    return null;
  }

  #toggleMode() {
    this.#showProblem(null);
    if (this.#isRaw && !this.#restoreForm()) return;
    if (!this.#isRaw) this.raw.value = prettyJson(this.form.read({ showsProblems: false }));
    this.#isRaw = !this.#isRaw;
    this.rawPart.hidden = !this.#isRaw;
    this.form.element.hidden = this.#isRaw;
    setText(this.mode, this.#isRaw ? "Edit as a form" : "Edit as JSON");
    this.mode.hidden = !this.form.isFormable;
  }

  #restoreForm() {
    const args = this.#rawArguments();
    const unknown = args ? this.form.write(args) : [];
    if (unknown.length > 0) this.#showProblem(`The form has no field for ${unknown.join(", ")}.`);
    return args && unknown.length === 0;
  }

  /** @param {string | null} problem */
  #showProblem(problem) {
    this.problem.hidden = !problem;
    setText(this.problem, problem ?? "");
  }
}
