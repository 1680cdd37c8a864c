// One control per field. Each returns `{ controls, read, write }`: `read()` returns `{ value }`, `{ problem }`, or, for
// an empty field, `{}`.

import { messageOf } from "../lib/errors.js";
import { h } from "../ui/dom.js";
import { toLocalInput, toRfc3339 } from "./local-datetime.js";

/**
 * @import { Field } from "./schema-fields.js"
 * @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Input
 * @typedef {{ value?: any, problem?: string }} Reading Empty for what was left empty.
 * @typedef {{ controls: Input[], read: () => Reading, write: (value: any) => void }} Control
 */

/** @type {{ [kind: string]: string }} */
const INPUT_TYPES = { email: "email", url: "url", date: "date", datetime: "datetime-local" };
const TEXTAREA_FROM = 200;
const REQUIRED_MESSAGE = "Fill this in.";

/**
 * @param {Field} field
 * @param {string} id
 * @param {{ isMultiline?: boolean }} [options]
 * @returns {Control}
 */
export function createControl(field, id, { isMultiline = false } = {}) {
  switch (field.kind) {
    case "number":
    case "integer":
      return numberControl(field, id);
    case "boolean":
      return booleanControl(field, id);
    case "choice":
      return selectControl(field, id);
    case "choices":
      return checkboxesControl(field, id);
    case "json":
      return jsonControl(field, id);
    default:
      return textControl(field, id, isMultiline);
  }
}

/**
 * @param {Field} field
 * @returns {Reading}
 */
function readEmpty(field) {
  if (!field.isRequired) return {};
  return field.isNullable ? { value: null } : { problem: REQUIRED_MESSAGE };
}

/**
 * @param {Field} field
 * @param {string} id
 * @param {boolean} isMultiline
 * @returns {Control}
 */
function textControl(field, id, isMultiline) {
  const isLong = field.kind === "text" && (isMultiline || (field.maxLength ?? 0) > TEXTAREA_FROM);
  const props = {
    id,
    name: field.name,
    class: "input",
    required: field.isRequired,
    autocomplete: "off",
    minlength: field.minLength,
  };
  const input = isLong
    ? h("textarea", { ...props, rows: "1" })
    : h("input", {
        ...props,
        type: INPUT_TYPES[field.kind] ?? "text",
        step: field.kind === "datetime" ? "1" : null,
        dir: "auto",
      });
  const write = (/** @type {any} */ value) => {
    input.value = field.kind === "datetime" ? toLocalInput(value) : String(value);
  };
  if (field.default !== undefined) write(field.default);
  const shownDefault = input.value;
  const read = () => {
    if (input.validity.badInput) return { problem: "This is not complete." };
    if (input.value === "") return readEmpty(field);
    if (field.default !== undefined && input.value === shownDefault) return { value: field.default };
    const problem = findTextProblem(field, input);
    return problem ? { problem } : { value: field.kind === "datetime" ? toRfc3339(input.value) : input.value };
  };
  return { controls: [input], read, write };
}

/**
 * @param {Field} field
 * @param {HTMLInputElement | HTMLTextAreaElement} input
 */
function findTextProblem(field, input) {
  const length = [...input.value].length; // counted as in JSON schema: an emoji is one character
  if (field.minLength !== undefined && length < field.minLength)
    return `Use at least ${field.minLength} characters (now ${length}).`;
  if (field.maxLength !== undefined && length > field.maxLength)
    return `Use at most ${field.maxLength} characters (now ${length}).`;
  if (!input.validity.typeMismatch) return null;
  return field.kind === "email"
    ? "Write an email address, such as name@example.com."
    : "Write a whole address, such as https://example.com.";
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function numberControl(field, id) {
  const isInteger = field.kind === "integer";
  // The browser counts steps from the minimum: a fractional minimum would forbid every whole number.
  const min = isInteger && field.min !== undefined ? Math.ceil(field.min) : field.min;
  const max = isInteger && field.max !== undefined ? Math.floor(field.max) : field.max;
  const input = h("input", {
    id,
    name: field.name,
    class: "input",
    type: "number",
    inputmode: isInteger ? "numeric" : "decimal",
    required: field.isRequired,
    step: isInteger ? "1" : "any",
    min,
    max,
    autocomplete: "off",
  });
  const write = (/** @type {any} */ value) => {
    input.value = String(value);
  };
  if (field.default !== undefined) write(field.default);
  const read = () => {
    if (input.validity.badInput) return { problem: "Write a number." };
    if (input.value === "") return readEmpty(field);
    const value = Number(input.value);
    if (isInteger && !Number.isSafeInteger(value)) return { problem: "Write a whole number." };
    if (min !== undefined && value < min) return { problem: `Use ${min} or more.` };
    if (max !== undefined && value > max) return { problem: `Use ${max} or less.` };
    return { value };
  };
  return { controls: [input], read, write };
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function booleanControl(field, id) {
  const input = h("input", { id, name: field.name, type: "checkbox", class: "checkbox" });
  let isTouched = false;
  const write = (/** @type {any} */ value) => {
    input.checked = value === true;
    isTouched = true;
  };
  if (field.default !== undefined) write(field.default);
  input.addEventListener("change", () => {
    isTouched = true;
  });
  const read = () => (isTouched || field.isRequired ? { value: input.checked } : {});
  return { controls: [input], read, write };
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function selectControl(field, id) {
  const options = field.options ?? [];
  const select = h("select", { id, name: field.name, class: "input select", required: field.isRequired });
  const blank = h("option", { value: "" }, field.isRequired ? "Choose…" : "No choice");
  select.append(blank, ...options.map(({ value, title }) => h("option", { value: String(value) }, title)));
  const write = (/** @type {any} */ value) => {
    select.selectedIndex = options.findIndex((option) => option.value === value) + 1;
  };
  write(field.default);
  const read = () => (select.selectedIndex > 0 ? { value: options[select.selectedIndex - 1].value } : readEmpty(field));
  return { controls: [select], read, write };
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function checkboxesControl(field, id) {
  const options = field.options ?? [];
  const boxes = options.map(({ value }, index) => {
    const box = h("input", { id: `${id}-${index}`, name: field.name, type: "checkbox", class: "checkbox" });
    box.value = String(value);
    return box;
  });
  let isTouched = false;
  const write = (/** @type {any} */ values) => {
    boxes.forEach((box, index) => {
      box.checked = Array.isArray(values) && values.includes(options[index].value);
    });
    isTouched = true;
  };
  if (field.default !== undefined) write(field.default);
  for (const box of boxes) box.addEventListener("change", () => (isTouched = true));
  const read = () => {
    const value = options.filter((_, index) => boxes[index].checked).map((option) => option.value);
    if (value.length === 0 && !field.isRequired && (!isTouched || (field.minItems ?? 0) > 0)) return {};
    if (field.minItems !== undefined && value.length < field.minItems)
      return { problem: `Choose at least ${field.minItems}.` };
    if (field.maxItems !== undefined && value.length > field.maxItems)
      return { problem: `Choose at most ${field.maxItems}.` };
    return { value };
  };
  return { controls: boxes, read, write };
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function jsonControl(field, id) {
  const area = h("textarea", {
    id,
    name: field.name,
    class: "input code",
    rows: "3",
    spellcheck: "false",
    required: field.isRequired,
    autocomplete: "off",
  });
  const write = (/** @type {any} */ value) => {
    area.value = field.holds === "anything" && typeof value === "string" ? value : JSON.stringify(value, null, 2);
  };
  if (field.default !== undefined && field.default !== null) write(field.default);
  const read = () => {
    const text = area.value.trim();
    if (text === "") return readEmpty(field);
    let value;
    try {
      value = JSON.parse(text);
    } catch (error) {
      return field.holds === "anything" ? { value: area.value } : { problem: `This is not JSON: ${messageOf(error)}.` };
    }
    if (field.holds === "array" && !Array.isArray(value)) return { problem: "Write a JSON array: […]." };
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return field.holds === "object" && !isObject ? { problem: "Write a JSON object: {…}." } : { value };
  };
  return { controls: [area], read, write };
}
