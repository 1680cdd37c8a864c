// The phases of a request, as named in rows, the legend, and the details.

/** @typedef {{ kind: string, from: number, to: number, isOpen: boolean }} PhaseSpan Times are epoch milliseconds. */

/** @type {{ [kind: string]: string }} */
export const PHASE_LABELS = {
  queued: "Queued",
  connecting: "Connecting",
  call: "Call",
  retry: "Retry",
  waiting: "Waiting for an answer",
  maybe_waiting: "Maybe waiting",
};

/** @type {{ [status: string]: string }} */
export const STATUS_LABELS = { pending: "Running", success: "Success", error: "Error", cancelled: "Cancelled" };

/** @type {{ [type: string]: string }} */
export const TYPE_LABELS = {
  tool_call: "Tool call",
  resource_read: "Resource read",
  prompt_get: "Prompt",
  own_tool: "Own tool",
  protocol: "Protocol",
};

/** @param {Wire.RequestRow} row */
export const statusLabel = (row) =>
  row.status === "pending" && row.taskId ? "Running as a task" : (STATUS_LABELS[row.status] ?? row.status);

/**
 * Beginning and end in ms. A running phase ends now.
 * @param {Wire.RequestRow} row
 * @param {number} now
 * @returns {[start: number, end: number]}
 */
export function extent(row, now) {
  const end = row.endedAt ?? (row.status === "pending" ? now : row.startedAt);
  return [row.startedAt, Math.max(row.startedAt, end)];
}

/**
 * @param {Wire.RequestRow} row
 * @param {number} now
 * @returns {PhaseSpan[]}
 */
export function phasesOf(row, now) {
  const [start, end] = extent(row, now);
  return (Array.isArray(row.phases) ? row.phases : [])
    .filter((phase) => Number.isFinite(phase?.from))
    .map((phase) => {
      return {
        kind: phase.kind in PHASE_LABELS ? phase.kind : "call",
        from: start + phase.from,
        to: phase.to == null ? end : start + phase.to,
        isOpen: phase.to == null,
      };
    });
}
