// The parts of a request's life, as rows, legend and details name them.

export const PHASES = {
  queued: "Queued",
  connecting: "Connecting",
  call: "Call",
  retry: "Retry",
  waiting: "Waiting for an answer",
};

export const STATUSES = { pending: "Running", success: "Success", error: "Error", cancelled: "Cancelled" };

export const TYPES = {
  tool_call: "Tool call",
  resource_read: "Resource read",
  prompt_get: "Prompt",
  own_tool: "Own tool",
  protocol: "Protocol",
};

export const statusName = (row) =>
  row.status === "pending" && row.taskId ? "Running as a task" : (STATUSES[row.status] ?? row.status);

/** Beginning and end in ms; a running one ends now. */
export function extent(row, now) {
  const end = Number.isFinite(row.endedAt) ? row.endedAt : row.status === "pending" ? now : row.startedAt;
  return [row.startedAt, Math.max(row.startedAt, end)];
}

export function phasesOf(row, now) {
  const [start, end] = extent(row, now);
  return (Array.isArray(row.phases) ? row.phases : [])
    .filter((phase) => Number.isFinite(phase?.from))
    .map((phase) => {
      const to = Number.isFinite(phase.to) ? start + phase.to : end;
      return {
        kind: phase.kind in PHASES ? phase.kind : "call",
        from: start + phase.from,
        to,
        isOpen: !Number.isFinite(phase.to),
      };
    });
}
