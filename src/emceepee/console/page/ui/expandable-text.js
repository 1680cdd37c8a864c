// Text of any length: cut at first, and whole when the reader asks.

import { bdi, h, setText } from "./dom.js";
import { size } from "../text/format.js";
import { clipped } from "../text/display-text.js";

export function longText(text, most, props) {
  const whole = String(text);
  const words = bdi(clipped(whole, most), props);
  if (whole.length <= most) return words;
  const all = () => {
    setText(words, whole);
    more.remove();
  };
  const more = h("button", { type: "button", class: "button small", onclick: all }, `Show all (${size(whole.length)})`);
  return h("span", null, words, " ", more);
}
