// JSON as a person reads it: indented, colored while it is short, cut while it is long.

import { append, fill, h } from "./dom.js";
import { size } from "../text/format.js";
import { stringify } from "../text/safe-json.js";

const MOST_COLORED = 20_000;
const MOST_SHOWN = 20_000;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

export const pretty = (value) => stringify(value, 2);

/** A block of code that can be reached and scrolled by keyboard. */
export function jsonBlock(value, label, props) {
  return textBlock(pretty(value), label, { isJson: true, ...props });
}

export function textBlock(text, label, { isJson = false, testid } = {}) {
  const pre = h("pre", { class: "code block", tabindex: "0", role: "group", "aria-label": label, testid });
  const show = (shown) => (isJson && shown.length <= MOST_COLORED ? fill(pre, colored(shown)) : fill(pre, shown));
  if (text.length <= MOST_SHOWN) return show(text);
  show(text.slice(0, MOST_SHOWN));
  const all = () => {
    show(text);
    more.remove();
  };
  const more = h("button", { type: "button", class: "button small", onclick: all }, `Show all (${size(text.length)})`);
  return h("div", { class: "cut" }, pre, more);
}

function colored(text) {
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
