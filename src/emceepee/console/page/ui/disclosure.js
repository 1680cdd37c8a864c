// <details> whose content is created only when it is opened.

import { h } from "./dom.js";

/**
 * @param {import("./dom.js").Children} summary
 * @param {() => Node} make
 * @param {import("./dom.js").Props} [props]
 */
export function disclosure(summary, make, props) {
  const details = h("details", { class: "disclosure", ...props }, h("summary", null, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}
