// A form made from a JSON schema, and what was filled in, exactly typed.

import { bdi, h, setText } from "../ui/dom.js";
import { controlFor } from "./field-controls.js";
import { longText } from "../ui/expandable-text.js";
import { fieldsOf } from "./schema-fields.js";
import { clipped } from "../text/display-text.js";

const MOST_HINT = 400;
let formCount = 0;

export class SchemaForm {
  #parts = [];

  constructor(schema, { prefersLines = false } = {}) {
    formCount += 1;
    const fields = fieldsOf(schema);
    this.isFormable = fields !== null;
    this.element = h("div", { class: "fields" });
    (fields ?? []).forEach((field, index) => {
      const part = new FieldPart(field, `form${formCount}-${index}`, { prefersLines });
      this.#parts.push(part);
      this.element.append(part.element);
    });
  }

  get isEmpty() {
    return this.#parts.length === 0;
  }

  /** The content, or null after the problems were shown by their fields. */
  read({ reportsProblems = true } = {}) {
    // A bare object: a property called __proto__ is a property like any other.
    const content = Object.create(null);
    let firstBad = null;
    for (const part of this.#parts) {
      const { value, problem } = part.control.read();
      if (reportsProblems) part.showProblem(problem);
      if (problem) firstBad ??= part;
      else if (value !== undefined) content[part.field.name] = value;
    }
    if (firstBad && reportsProblems) firstBad.focus();
    return firstBad && reportsProblems ? null : content;
  }

  /** The names that no field stands for. */
  write(content) {
    const known = new Map(this.#parts.map((part) => [part.field.name, part]));
    const unknown = Object.keys(content).filter((name) => !known.has(name));
    if (unknown.length === 0) for (const [name, value] of Object.entries(content)) known.get(name).control.write(value);
    return unknown;
  }

  /** Show what the server found; gives back what belongs to no field. */
  showProblems(problems) {
    const others = [];
    let firstBad = null;
    for (const problem of problems) {
      const part = this.#parts.find((each) => each.field.name === problem.field);
      if (part) part.showProblem(problem.message);
      else others.push(problem);
      firstBad ??= part;
    }
    firstBad?.focus();
    return others;
  }

  setDisabled(isDisabled) {
    for (const part of this.#parts) for (const control of part.control.controls) control.disabled = isDisabled;
  }
}

class FieldPart {
  constructor(field, id, options) {
    this.field = field;
    this.control = controlFor(field, id, options);
    const hint = hintOf(field);
    this.hint = hint.length > 0 ? h("div", { class: "hint", id: `${id}-hint` }, hint) : null;
    this.problem = h("p", { class: "field-problem", id: `${id}-problem`, hidden: true });
    const described = [this.hint && `${id}-hint`, `${id}-problem`].filter(Boolean).join(" ");
    for (const control of this.control.controls) {
      control.setAttribute("aria-describedby", described);
      control.addEventListener("input", () => this.showProblem(null));
    }
    this.element = this.#assemble(id);
  }

  #assemble(id) {
    const { field, control } = this;
    const mark = field.isRequired && h("span", { class: "required" }, "required");
    const title = bdi(clipped(field.title, 120));
    if (field.kind === "choices") {
      const boxes = control.controls.map((box, index) =>
        h(
          "div",
          { class: "check-line" },
          box,
          h("label", { for: box.id }, bdi(clipped(field.options[index].title, 200))),
        ),
      );
      return h("fieldset", { class: "field" }, h("legend", null, title, mark), this.hint, boxes, this.problem);
    }
    const label = h("label", { for: id }, title);
    if (field.kind === "boolean") {
      return h(
        "div",
        { class: "field" },
        h("div", { class: "check-line" }, control.controls, label, mark),
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

function hintOf(field) {
  const limits = [];
  const { min, max, minLength, maxLength, minItems, maxItems } = field;
  if (min !== undefined && max !== undefined) limits.push(`${min} to ${max}`);
  else if (min !== undefined) limits.push(`${min} or more`);
  else if (max !== undefined) limits.push(`${max} or less`);
  if (minLength > 0) limits.push(`at least ${minLength} characters`);
  if (maxLength !== undefined) limits.push(`at most ${maxLength} characters`);
  if (minItems > 0) limits.push(`at least ${minItems}`);
  if (maxItems !== undefined) limits.push(`at most ${maxItems}`);
  if (field.kind === "json") limits.push(field.holds === "anything" ? "JSON, or else text" : `JSON ${field.holds}`);
  if (field.kind === "boolean" && field.default !== undefined) limits.push(`default: ${field.default ? "yes" : "no"}`);
  if (field.pattern) limits.push(`pattern ${clipped(field.pattern, 80)}`);
  return [
    field.description && h("span", { class: "hint-text" }, longText(field.description, MOST_HINT)),
    limits.length > 0 && h("span", { class: "hint-limits" }, bdi(limits.join(" · "))),
  ].filter(Boolean);
}
