// Totals of all samples.

/**
 * @param {Wire.OverviewSample[]} samples
 * @param {number} from
 */
export function sumUp(samples, from) {
  const all = {
    requests: 0,
    errors: 0,
    /** @type {number | null} */
    slowestMs: null,
    /** @type {number | null} The last that is known. */
    memory: null,
  };
  for (const { at, requests, errors, slowestMs, memory } of samples) {
    if (at <= from) continue;
    all.requests += requests;
    all.errors += errors;
    if (slowestMs !== null) all.slowestMs = Math.max(all.slowestMs ?? 0, slowestMs);
    all.memory = memory ?? all.memory;
  }
  return all;
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1e6) return `${Math.round(bytes / 1e3)} kB`;
  return bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}
