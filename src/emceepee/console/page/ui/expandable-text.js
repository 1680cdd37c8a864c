// Text of any length: truncated at first, and complete on request.

import { truncate } from "../lib/display-text.js";
import { formatSize } from "../lib/format.js";
import { bdi, h, setText } from "./dom.js";

/**
 * @param {unknown} text
 * @param {number} max
 * @param {import("./dom.js").Props} [props]
 */
export function expandableText(text, max, props) {
  const whole = String(text);
  const shown = bdi(truncate(whole, max), props);
  if (whole.length <= max) return shown;
  const all = () => {
    setText(shown, whole);
    more.remove();
  };
  const more = h(
    "button",
    { type: "button", class: "button small", onclick: all },
    `Show all (${formatSize(whole.length)})`,
  );
  return h("span", null, shown, " ", more);
}
