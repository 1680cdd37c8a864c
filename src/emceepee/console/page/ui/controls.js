// Buttons, selects, and search boxes of the toolbars.

import { revealInvisible } from "../lib/display-text.js";
import { h, replaceContent } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @import { Children, Props } from "./dom.js"
 * @typedef {[value: string, text: string]} Option
 */

/**
 * @param {import("./icons.js").IconName} name
 * @param {string} label
 * @param {Props} [props]
 */
export function iconButton(name, label, props) {
  return h(
    "button",
    { type: "button", class: "button quiet icon-only", "aria-label": label, title: label, ...props },
    icon(name),
  );
}

/**
 * @param {string} label
 * @param {Props} [props]
 */
export function button(label, props) {
  return h("button", { type: "button", class: "button", ...props }, label);
}

/**
 * @param {string} label
 * @param {string} testid
 * @param {(text: string) => void} onInput
 */
export function searchBox(label, testid, onInput) {
  const input = h("input", {
    type: "search",
    class: "input search",
    placeholder: label,
    "aria-label": label,
    testid,
    autocomplete: "off",
    spellcheck: "false",
  });
  input.addEventListener("input", () => onInput(input.value));
  return { element: h("span", { class: "search-box" }, icon("search", 16), input), input };
}

/** A select whose options can change without losing what is selected. */
export class Select {
  #shown = "";

  /**
   * @param {string} label
   * @param {{ testid: string, onChange: (value: string) => void, options?: Option[] }} settings
   */
  constructor(label, { testid, onChange, options = [] }) {
    this.element = h("select", { class: "input select", "aria-label": label, title: label, testid });
    this.element.addEventListener("change", () => onChange(this.element.value));
    this.setOptions(options);
  }

  get value() {
    return this.element.value;
  }

  set value(value) {
    this.element.value = value;
  }

  /**
   * `options`: pairs of value and text.
   * @param {Option[]} options
   */
  setOptions(options) {
    const shown = JSON.stringify(options);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const selected = this.element.value;
    replaceContent(
      this.element,
      options.map(([value, text]) => {
        const option = h("option", null);
        option.value = value;
        option.textContent = revealInvisible(text);
        return option;
      }),
    );
    this.element.value = options.some(([value]) => value === selected) ? selected : (options[0]?.[0] ?? "");
  }
}

/**
 * @param {string} title
 * @param {...Children} children
 */
export function emptyState(title, ...children) {
  return h("div", { class: "empty-state" }, h("h2", null, title), ...children);
}

/**
 * @param {string} title
 * @param {...Children} children
 */
export function viewHeader(title, ...children) {
  return h("header", { class: "view-header" }, h("h1", null, title), ...children);
}

/**
 * A list view: its element and the parent of its rows. `empty` is shown while there are no rows.
 * @param {string} title
 * @param {Element} empty
 */
export function listView(title, empty) {
  const rows = h("ul", { class: "list" });
  const element = h("section", { class: "view page", "aria-label": title }, viewHeader(title), empty, rows);
  return { element, rows };
}
