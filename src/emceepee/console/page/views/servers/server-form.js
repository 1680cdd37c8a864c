// The form for adding a server or changing its settings.

import { EMPTY_FIELDS, entryOf, fieldsOf } from "../../forms/server-entry.js";
import { messageOf } from "../../lib/errors.js";
import { disclosure } from "../../ui/disclosure.js";
import { bdi, h, replaceContent, setText } from "../../ui/dom.js";
import { showToast } from "../../ui/toast.js";

/**
 * @import { ServerAdmin } from "../../calls/server-admin.js"
 * @import { ServerFields } from "../../forms/server-entry.js"
 * @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Control
 * @typedef {{ element: HTMLElement, control: Control, problem: HTMLElement }} FieldPart
 */

/** @type {[value: string, text: string][]} */
const KINDS = [
  ["url", "An address (HTTP or SSE)"],
  ["command", "A program on emceepee’s machine"],
];
/** @type {[value: string, text: string][]} */
const TRANSPORTS = [
  ["", "Find out"],
  ["http", "Streamable HTTP"],
  ["sse", "SSE (older)"],
];
const KIND_FIELDS = { url: ["url", "type", "headers"], command: ["command", "args", "env", "cwd"] };
let formCount = 0;

export class ServerForm {
  /** @type {Map<keyof ServerFields, FieldPart>} */
  #parts = new Map();
  #isBusy = false;

  /**
   * Without `before`, a server is added.
   * @param {ServerAdmin} admin
   * @param {{ before?: Wire.ServerEntry, onDone: () => void }} settings
   */
  constructor(admin, { before, onDone }) {
    formCount += 1;
    this.admin = admin;
    this.before = before;
    this.onDone = onDone;
    this.fields = before ? fieldsOf(before) : EMPTY_FIELDS;
    this.problem = h("p", { class: "error-text", role: "alert", testid: "server-form-problem", hidden: true });
    this.submit = h("button", { type: "submit", class: "button primary" }, before ? "Save" : "Add server");
    this.cancel = h("button", { type: "button", class: "button", onclick: () => this.onDone() }, "Cancel");
    this.element = h(
      "form",
      {
        class: "server-form",
        testid: "server-form",
        novalidate: true,
        "aria-label": before ? `Settings of ${before.name}` : "Add a server",
      },
      this.#fieldElements(),
      this.problem,
      h("div", { class: "actions" }, this.submit, this.cancel),
    );
    this.element.addEventListener("submit", (event) => this.#save(event));
    this.#showKind();
  }

  focus() {
    this.#parts.get(this.before ? "description" : "name")?.control.focus();
  }

  #fieldElements() {
    const { before } = this;
    const masked = before && "Values are not shown: write them again.";
    const kind = this.#choice("kind", "Kind", KINDS);
    kind.control.addEventListener("change", () => this.#showKind());
    const more = [
      this.#lines("allowedTools", "Only these tools", "Names or patterns such as read_*, one per line."),
      this.#lines("deniedTools", "Not these tools", "Names or patterns, one per line."),
      this.#line("timeout", "Time for a call, in seconds", "Empty: as emceepee’s limits say.", {
        inputmode: "decimal",
      }),
    ];
    const parts = [
      this.#line("name", "Name", before ? "" : "Callers use it. It cannot be changed later.", {
        required: true,
        readonly: Boolean(before),
      }),
      this.#line("description", "Description", "Its purpose, in one line. Models read it."),
      kind,
      this.#line("url", "Address", "Such as https://mcp.example.com/mcp", { required: true, inputmode: "url" }),
      this.#choice("type", "Transport", TRANSPORTS),
      this.#lines("headers", "Headers", masked ?? "One per line, as Name: value."),
      this.#line("command", "Program", "Such as npx or /usr/bin/python3", { required: true }),
      this.#lines("args", "Arguments", 'One per line; an empty one, or one with line breaks, as JSON: "" or "a\\nb".'),
      this.#lines("env", "Environment", masked ?? "One per line, as NAME=value."),
      this.#line("cwd", "Directory", "In which it is started."),
    ].map(({ element }) => element);
    const hasLimits = [...more].some(({ control }) => control.value !== "");
    const limits = disclosure(
      "Limits",
      () =>
        h(
          "div",
          { class: "fields" },
          more.map(({ element }) => element),
        ),
      { open: hasLimits },
    );
    return h("div", { class: "fields" }, parts, limits);
  }

  /**
   * @param {keyof ServerFields} name
   * @param {string} label
   * @param {string} hint
   * @param {import("../../ui/dom.js").Props} [props]
   */
  #line(name, label, hint, props) {
    const control = h("input", { type: "text", class: "input", spellcheck: "false", autocomplete: "off", ...props });
    return this.#field(name, label, control, hint);
  }

  /**
   * @param {keyof ServerFields} name
   * @param {string} label
   * @param {string} hint
   */
  #lines(name, label, hint) {
    const control = h("textarea", { class: "input code", rows: "2", spellcheck: "false", autocomplete: "off" });
    return this.#field(name, label, control, hint);
  }

  /**
   * @param {keyof ServerFields} name
   * @param {string} label
   * @param {[value: string, text: string][]} options
   */
  #choice(name, label, options) {
    const control = h(
      "select",
      { class: "input select" },
      options.map(([value, text]) => h("option", { value }, text)),
    );
    return this.#field(name, label, control, "");
  }

  /**
   * @param {keyof ServerFields} name
   * @param {string} label
   * @param {Control} control
   * @param {string} hint
   * @returns {FieldPart}
   */
  #field(name, label, control, hint) {
    const id = `server${formCount}-${name}`;
    control.id = id;
    control.name = name;
    control.value = this.fields[name];
    control.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
    const problem = h("p", { class: "field-problem", id: `${id}-problem`, hidden: true });
    const element = h(
      "div",
      { class: "field", dataset: { field: name } },
      h("label", { for: id }, label),
      control,
      hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
      problem,
    );
    const part = { element, control, problem };
    control.addEventListener("input", () => showProblem(part, ""));
    this.#parts.set(name, part);
    return part;
  }

  #showKind() {
    const chosen = this.#parts.get("kind")?.control.value;
    for (const [kind, names] of Object.entries(KIND_FIELDS))
      for (const name of names) {
        const part = this.#parts.get(/** @type {keyof ServerFields} */ (name));
        if (part) part.element.hidden = kind !== chosen;
      }
  }

  /** @param {SubmitEvent} event */
  async #save(event) {
    event.preventDefault();
    if (this.#isBusy) return;
    const entry = this.#read();
    if (!entry) return;
    this.#setBusy(true);
    try {
      const server = await this.admin.save(entry, { isEdit: Boolean(this.before) });
      const done = this.before ? "was changed" : "was added";
      showToast(
        server.status === "authorizing"
          ? `${entry.name} ${done}, and wants a login: use the link on its card.`
          : `${entry.name} ${done}.`,
      );
      this.onDone();
    } catch (error) {
      this.#showError(messageOf(error));
    }
    this.#setBusy(false);
  }

  /** The settings, or null after the problems were shown. */
  #read() {
    this.problem.hidden = true;
    const values = /** @type {ServerFields} */ ({ ...EMPTY_FIELDS });
    for (const [name, { control }] of this.#parts) Object.assign(values, { [name]: control.value });
    const { entry, problems } = entryOf(values, this.before);
    for (const [name, part] of this.#parts) showProblem(part, problems[name] ?? "");
    const first = [...this.#parts].find(([name]) => problems[name]);
    first?.[1].control.focus();
    return first ? null : entry;
  }

  /** @param {string} message */
  #showError(message) {
    replaceContent(this.problem, bdi(message));
    this.problem.hidden = false;
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.#isBusy = isBusy;
    this.submit.disabled = isBusy;
    const idle = this.before ? "Save" : "Add server";
    setText(this.submit, isBusy ? "Connecting…" : idle);
  }
}

/**
 * @param {FieldPart} part
 * @param {string} problem
 */
function showProblem({ control, problem: element }, problem) {
  element.hidden = !problem;
  setText(element, problem);
  if (problem) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
}
