// How long each part of a request took, as a table with small bars.

import { h } from "../../ui/dom.js";
import { duration } from "../../text/format.js";
import { PHASES, extent, phasesOf } from "../../state/request-phases.js";

export function phaseTable(row, now) {
  const [start, end] = extent(row, now);
  const whole = Math.max(1, end - start);
  const lines = phasesOf(row, now).map((phase) => line(phase, start, whole, row.status));
  if (lines.length === 0) return h("p", { class: "muted" }, "No timings.");
  const head = h(
    "tr",
    { class: "visually-hidden" },
    ["Phase", "From", "Share", "Took"].map((name) => h("th", { scope: "col" }, name)),
  );
  return h("table", { class: "phases" }, h("thead", null, head), h("tbody", null, lines));
}

function line({ kind, from, to, isOpen }, start, whole, status) {
  const bar = h("i", { class: "swatch", dataset: { kind } });
  bar.style.marginInlineStart = `${(((from - start) / whole) * 100).toFixed(1)}%`;
  bar.style.width = `max(2px, ${(((to - from) / whole) * 100).toFixed(1)}%)`;
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, PHASES[kind]),
    h("td", { class: "number muted" }, `+${duration(from - start)}`),
    h("td", { class: "share" }, h("div", { class: "track" }, bar)),
    h("td", { class: "number" }, isOpen && status === "pending" ? `${duration(to - from)} …` : duration(to - from)),
  );
}
