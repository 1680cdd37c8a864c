// A form generated from a JSON schema, and its typed content.

import { truncate } from "../lib/display-text.js";
import { bdi, h, setText } from "../ui/dom.js";
import { expandableText } from "../ui/expandable-text.js";
import { createControl } from "./field-controls.js";
import { readFields } from "./schema-fields.js";

/**
 * @import { Field } from "./schema-fields.js"
 */

const MAX_HINT = 400;
let formCount = 0;

export class SchemaForm {
  /** @type {FieldView[]} */
  #views = [];

  /**
   * @param {unknown} schema
   * @param {{ isMultiline?: boolean }} [options]
   */
  constructor(schema, { isMultiline = false } = {}) {
    formCount += 1;
    const fields = readFields(schema);
    this.isFormable = fields !== null;
    this.element = h("div", { class: "fields" });
    (fields ?? []).forEach((field, index) => {
      const view = new FieldView(field, `form${formCount}-${index}`, { isMultiline });
      this.#views.push(view);
      this.element.append(view.element);
    });
  }

  get isEmpty() {
    return this.#views.length === 0;
  }

  /**
   * The content, or null after the problems were shown at their fields.
   * @param {{ showsProblems?: boolean }} [options]
   * @returns {{ [name: string]: any } | null}
   */
  read({ showsProblems = true } = {}) {
    // An object without a prototype: a property called __proto__ is a property like any other.
    const content = Object.create(null);
    /** @type {FieldView | undefined} */
    let firstInvalid;
    for (const view of this.#views) {
      const { value, problem } = view.control.read();
      if (showsProblems) view.showProblem(problem);
      if (problem) firstInvalid ??= view;
      else if (value !== undefined) content[view.field.name] = value;
    }
    if (firstInvalid && showsProblems) firstInvalid.focus();
    return firstInvalid && showsProblems ? null : content;
  }

  /**
   * The names without a field.
   * @param {{ [name: string]: any }} content
   */
  write(content) {
    const known = new Map(this.#views.map((view) => [view.field.name, view]));
    const unknown = Object.keys(content).filter((name) => !known.has(name));
    if (unknown.length === 0)
      for (const [name, value] of Object.entries(content)) known.get(name)?.control.write(value);
    return unknown;
  }

  /**
   * Show the problems that the server found. Returns the problems without a field.
   * @param {Wire.Problem[]} problems
   */
  showProblems(problems) {
    /** @type {Wire.Problem[]} */
    const others = [];
    /** @type {FieldView | undefined} */
    let firstInvalid;
    for (const problem of problems) {
      const view = this.#views.find((each) => each.field.name === problem.field);
      if (view) view.showProblem(problem.message);
      else others.push(problem);
      firstInvalid ??= view;
    }
    firstInvalid?.focus();
    return others;
  }

  /** @param {boolean} isDisabled */
  setDisabled(isDisabled) {
    for (const view of this.#views) for (const control of view.control.controls) control.disabled = isDisabled;
  }
}

class FieldView {
  /**
   * @param {Field} field
   * @param {string} id
   * @param {{ isMultiline: boolean }} options
   */
  constructor(field, id, options) {
    this.field = field;
    this.control = createControl(field, id, options);
    const hint = hintElements(field);
    this.hint = hint.length > 0 ? h("div", { class: "hint", id: `${id}-hint` }, hint) : null;
    this.problem = h("p", { class: "field-problem", id: `${id}-problem`, hidden: true });
    const described = [this.hint && `${id}-hint`, `${id}-problem`].filter(Boolean).join(" ");
    for (const control of this.control.controls) {
      control.setAttribute("aria-describedby", described);
      control.addEventListener("input", () => this.showProblem(null));
    }
    this.element = this.#assemble(id);
  }

  /** @param {string} id */
  #assemble(id) {
    const { field, control } = this;
    const mark = field.isRequired && h("span", { class: "required" }, "required");
    const title = bdi(truncate(field.title, 120));
    if (field.kind === "choices") {
      const boxes = control.controls.map((box, index) =>
        h(
          "div",
          { class: "checkbox-row" },
          box,
          h("label", { for: box.id }, bdi(truncate(field.options?.[index].title, 200))),
        ),
      );
      return h("fieldset", { class: "field" }, h("legend", null, title, mark), this.hint, boxes, this.problem);
    }
    const label = h("label", { for: id }, title);
    if (field.kind === "boolean") {
      return h(
        "div",
        { class: "field" },
        h("div", { class: "checkbox-row" }, control.controls, label, mark),
        this.hint,
        this.problem,
      );
    }
    return h(
      "div",
      { class: "field" },
      h("div", { class: "field-head" }, label, mark),
      control.controls,
      this.hint,
      this.problem,
    );
  }

  /** @param {string | null | undefined} problem */
  showProblem(problem) {
    this.problem.hidden = !problem;
    setText(this.problem, problem ?? "");
    for (const control of this.control.controls) {
      control.setCustomValidity(problem ?? "");
      if (problem) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }

  focus() {
    this.control.controls[0]?.focus();
  }
}

/** @param {Field} field */
function hintElements(field) {
  /** @type {string[]} */
  const limits = [];
  const { min, max, minLength, maxLength, minItems, maxItems } = field;
  if (min !== undefined && max !== undefined) limits.push(`${min} to ${max}`);
  else if (min !== undefined) limits.push(`${min} or more`);
  else if (max !== undefined) limits.push(`${max} or less`);
  if (minLength !== undefined && minLength > 0) limits.push(`at least ${minLength} characters`);
  if (maxLength !== undefined) limits.push(`at most ${maxLength} characters`);
  if (minItems !== undefined && minItems > 0) limits.push(`at least ${minItems}`);
  if (maxItems !== undefined) limits.push(`at most ${maxItems}`);
  if (field.kind === "json") limits.push(field.holds === "anything" ? "JSON, or else text" : `JSON ${field.holds}`);
  if (field.kind === "boolean" && field.default !== undefined) limits.push(`default: ${field.default ? "yes" : "no"}`);
  if (field.pattern) limits.push(`pattern ${truncate(field.pattern, 80)}`);
  return [
    field.description && h("span", { class: "hint-text" }, expandableText(field.description, MAX_HINT)),
    limits.length > 0 && h("span", { class: "hint-limits" }, bdi(limits.join(" · "))),
  ].filter(Boolean);
}
