// The meaning of the bars' colors and patterns.

import { PHASE_LABELS } from "../../state/request-phases.js";
import { h } from "../../ui/dom.js";

const narrow = matchMedia("(max-width: 760px)");
const OUTCOMES = { error: "Error", cancelled: "Cancelled" };

/** @param {Element} count */
export function legend(count) {
  const entries = [
    ...Object.entries(PHASE_LABELS).map(([kind, name]) => entry({ kind }, name)),
    ...Object.entries(OUTCOMES).map(([status, name]) => entry({ status }, name)),
  ];
  const list = h("ul", null, entries);
  const scroller = h("div", { class: "legend-list", role: "group", "aria-label": "Legend" }, list);
  // It is a stop of the Tab key only if it is too long for the screen and therefore scrolls.
  const update = () => (narrow.matches ? scroller.setAttribute("tabindex", "0") : scroller.removeAttribute("tabindex"));
  narrow.addEventListener("change", update);
  update();
  return h("footer", { class: "legend" }, scroller, count);
}

/**
 * @param {{ [name: string]: string }} dataset
 * @param {string} name
 */
const entry = (dataset, name) => h("li", null, h("i", { class: "swatch", dataset }), name);
