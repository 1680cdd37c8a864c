// Buttons, selects and search boxes of the toolbars.

import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { visible } from "../text/display-text.js";

export function iconButton(name, label, props) {
  return h(
    "button",
    { type: "button", class: "button quiet square", "aria-label": label, title: label, ...props },
    icon(name),
  );
}

export function button(label, props) {
  return h("button", { type: "button", class: "button", ...props }, label);
}

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

/** A select whose options can change without losing what is chosen. */
export class Choice {
  #shown = "";

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

  /** `options`: pairs of value and text. */
  setOptions(options) {
    const shown = JSON.stringify(options);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const chosen = this.element.value;
    fill(
      this.element,
      options.map(([value, text]) => {
        const option = h("option", null);
        option.value = value;
        option.textContent = visible(text);
        return option;
      }),
    );
    this.element.value = options.some(([value]) => value === chosen) ? chosen : (options[0]?.[0] ?? "");
  }
}

export function emptyState(title, ...children) {
  return h("div", { class: "empty" }, h("h2", null, title), children);
}

export function viewHead(title, ...children) {
  return h("header", { class: "view-head" }, h("h1", null, title), children);
}

/** A view that is a list: its element, and where its rows go. `empty` shows while there are none. */
export function listView(title, empty) {
  const rows = h("ul", { class: "list" });
  const element = h("section", { class: "view page", "aria-label": title }, viewHead(title), empty, rows);
  return { element, rows };
}
