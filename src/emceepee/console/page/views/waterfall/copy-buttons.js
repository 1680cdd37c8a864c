// Buttons to copy a request.

import { asCommand, asDocument, asToolCall, copyWarning } from "../../state/request-copy.js";
import { copyToClipboard } from "../../ui/clipboard.js";
import { h } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { prettyJson } from "../../ui/json-view.js";

export class CopyButtons {
  /** @type {Wire.RequestRow | null} */
  #row = null;
  /** @type {Wire.RequestDetail | null} */
  #detail = null;

  constructor() {
    this.command = this.#button("copy-command", "Command", (row, args) => asCommand(row, args) ?? "");
    this.buttons = [
      this.command,
      this.#button("copy-call", "Tool call", (row, args) => prettyJson(asToolCall(row, args))),
      this.#button("copy-json", "JSON", (row) => prettyJson(asDocument(row, this.#detail))),
    ];
    this.element = h(
      "div",
      { class: "copy-buttons", role: "group", "aria-label": "Copy the request" },
      icon("copy", 16),
      h("span", { class: "muted small", "aria-hidden": "true" }, "Copy as"),
      this.buttons,
    );
  }

  /**
   * @param {Wire.RequestRow | null} row
   * @param {Wire.RequestDetail | null} detail null while it is loaded
   */
  update(row, detail) {
    this.#row = row;
    this.#detail = detail;
    for (const each of this.buttons) each.disabled = !row || !detail;
    this.command.hidden = !row || asCommand(row, detail?.args) === null;
  }

  /**
   * @param {string} testid
   * @param {string} what
   * @param {(row: Wire.RequestRow, args: any) => string} write
   */
  #button(testid, what, write) {
    const copy = () => {
      if (!this.#row) return;
      const text = write(this.#row, this.#detail?.args);
      copyToClipboard(text, what, copyWarning(text, this.#detail));
    };
    const label = `Copy as ${what === "JSON" ? what : what.toLowerCase()}`;
    return h(
      "button",
      { type: "button", class: "button small", testid, "aria-label": label, title: label, onclick: copy },
      what,
    );
  }
}
