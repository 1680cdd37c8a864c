// What the colors and patterns of the bars mean.

import { h } from "./dom.js";
import { PHASES } from "./phases.js";

const OUTCOMES = { error: "Error", cancelled: "Cancelled" };

export function legend(count) {
  const entries = [
    ...Object.entries(PHASES).map(([kind, name]) => entry({ kind }, name)),
    ...Object.entries(OUTCOMES).map(([status, name]) => entry({ status }, name)),
  ];
  return h("footer", { class: "legend" }, h("ul", { "aria-label": "Legend" }, entries), count);
}

const entry = (dataset, name) => h("li", null, h("i", { class: "swatch", dataset }), name);
