// The duration of each phase of a request, as a table with small bars.

import { formatDuration } from "../../lib/format.js";
import { PHASE_LABELS, extent, phasesOf } from "../../state/request-phases.js";
import { h } from "../../ui/dom.js";

/**
 * @param {Wire.RequestRow} row
 * @param {number} now
 */
export function phaseTable(row, now) {
  const [start, end] = extent(row, now);
  const whole = Math.max(1, end - start);
  const lines = phasesOf(row, now).map((phase) => phaseRow(phase, start, whole, row.status));
  if (lines.length === 0) return h("p", { class: "muted" }, "No timings.");
  const head = h(
    "tr",
    { class: "visually-hidden" },
    ["Phase", "From", "Share", "Took"].map((name) => h("th", { scope: "col" }, name)),
  );
  return h("table", { class: "phases" }, h("thead", null, head), h("tbody", null, lines));
}

/**
 * @param {import("../../state/request-phases.js").PhaseSpan} phase
 * @param {number} start
 * @param {number} whole
 * @param {string} status
 */
function phaseRow({ kind, from, to, isOpen }, start, whole, status) {
  const bar = h("i", { class: "swatch", dataset: { kind } });
  bar.style.marginInlineStart = `${(((from - start) / whole) * 100).toFixed(1)}%`;
  bar.style.width = `max(2px, ${(((to - from) / whole) * 100).toFixed(1)}%)`;
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, PHASE_LABELS[kind]),
    h("td", { class: "number muted" }, `+${formatDuration(from - start)}`),
    h("td", { class: "share" }, h("div", { class: "track" }, bar)),
    h(
      "td",
      { class: "number" },
      isOpen && status === "pending" ? `${formatDuration(to - from)} …` : formatDuration(to - from),
    ),
  );
}
