// JSON formatted for people: indented, highlighted if it is short, and cut if it is long.

import { formatSize } from "../lib/format.js";
import { stringify } from "../lib/safe-json.js";
import { append, h, replaceContent } from "./dom.js";

const MAX_HIGHLIGHTED = 20_000;
const MAX_SHOWN = 20_000;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

/** @param {unknown} value */
export const prettyJson = (value) => stringify(value, 2);

/**
 * A block of code that can be focused and scrolled by keyboard.
 * @param {unknown} value
 * @param {string} label
 * @param {{ testid?: string }} [options]
 */
export function jsonBlock(value, label, options) {
  return textBlock(prettyJson(value), label, { isJson: true, ...options });
}

/**
 * @param {string} text
 * @param {string} label
 * @param {{ isJson?: boolean, testid?: string }} [options]
 * @returns {HTMLElement}
 */
export function textBlock(text, label, { isJson = false, testid } = {}) {
  const pre = h("pre", { class: "code block", tabindex: "0", role: "group", "aria-label": label, testid });
  const show = (/** @type {string} */ shown) =>
    isJson && shown.length <= MAX_HIGHLIGHTED ? replaceContent(pre, highlight(shown)) : replaceContent(pre, shown);
  if (text.length <= MAX_SHOWN) return show(text);
  show(text.slice(0, MAX_SHOWN));
  const all = () => {
    show(text);
    more.remove();
  };
  const more = h(
    "button",
    { type: "button", class: "button small", onclick: all },
    `Show all (${formatSize(text.length)})`,
  );
  return h("div", { class: "truncated" }, pre, more);
}

/** @param {string} text */
function highlight(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const kind = match[2] ? "key" : match[1] ? "string" : match[3] ? "word" : "number";
    parts.push(h("span", { class: `json-${kind}` }, match[1] ?? match[0]), match[2]);
    at = match.index + match[0].length;
  }
  return append(document.createDocumentFragment(), [...parts, text.slice(at)]);
}
