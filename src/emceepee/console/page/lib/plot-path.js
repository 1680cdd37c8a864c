// Plots as SVG paths: numbers over time, drawn as steps.

/**
 * @typedef {{ at: number, value: number | null }} Point At the end of its stretch of time; null is not known.
 * @typedef {{ from: number, to: number, max: number, width: number, height: number, stepMs: number }} Box
 */

const DECIMALS = 1;

/** @param {number} value */
const short = (value) => String(Number(value.toFixed(DECIMALS)));

/**
 * The outline of the area under the points, and the line on top of it. Both have a gap at unknown values.
 * @param {Point[]} points in order of time
 * @param {Box} box
 * @returns {{ area: string, line: string }}
 */
export function stepPaths(points, { from, to, max, width, height, stepMs }) {
  const x = (/** @type {number} */ at) =>
    short((Math.min(Math.max(at, from), to) - from) * (width / Math.max(to - from, 1)));
  const y = (/** @type {number} */ value) => short(height - (Math.min(value, max) / Math.max(max, 1e-9)) * height);
  /** @type {string[]} */
  const area = [];
  /** @type {string[]} */
  const line = [];
  for (const run of runsOf(points.filter(({ at }) => at > from && at - stepMs < to), stepMs)) {
    const steps = run.map(({ at, value }) => `${x(at - stepMs)} ${y(value)}L${x(at)} ${y(value)}`);
    const first = run[0];
    const last = run[run.length - 1];
    line.push(`M${steps.join("L")}`);
    area.push(`M${x(first.at - stepMs)} ${height}L${steps.join("L")}L${x(last.at)} ${height}Z`);
  }
  return { area: area.join(""), line: line.join("") };
}

/**
 * Runs of consecutive known points.
 * @param {Point[]} points
 * @param {number} stepMs
 */
function runsOf(points, stepMs) {
  /** @type {{ at: number, value: number }[][]} */
  const runs = [];
  let before = -Infinity;
  for (const { at, value } of points) {
    if (value === null || !Number.isFinite(value)) {
      before = -Infinity;
      continue;
    }
    if (at - before > stepMs * 2.5) runs.push([]);
    runs[runs.length - 1].push({ at, value });
    before = at;
  }
  return runs;
}

/**
 * The next larger or equal round number: 1, 2, or 5 with zeros.
 * @param {number} value
 */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((each) => each * power >= value * (1 - 1e-9)) ?? 10;
  return step * power;
}
