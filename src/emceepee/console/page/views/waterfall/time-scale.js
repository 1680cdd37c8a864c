// The time axis: the visible range and the positions of its ticks. Pure: time is an argument.

/** @typedef {{ at: number, x: number, step: number }} Tick `x` is in pixels from the left edge. */

export const MIN_SPAN_MS = 20;
export const MAX_SPAN_MS = 7 * 86_400_000;
const TICK_STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5,
  432e5, 864e5,
];
const MARGIN = 0.03; // margin that keeps the newest bar off the border

export class TimeScale {
  from = 0;
  span = 60_000;
  isFollowing = true;

  get to() {
    return this.from + this.span;
  }

  /**
   * Keep the latest time at the right edge.
   * @param {number} newest
   */
  follow(newest) {
    if (this.isFollowing) this.from = newest + this.span * MARGIN - this.span;
  }

  /**
   * `at` (0 left … 1 right) keeps its position.
   * @param {number} factor
   * @param {number} [at]
   */
  zoom(factor, at = 0.5) {
    const span = Math.min(MAX_SPAN_MS, Math.max(MIN_SPAN_MS, this.span * factor));
    const anchor = this.isFollowing ? 1 - MARGIN : at;
    this.from += (this.span - span) * anchor;
    this.span = span;
  }

  /** @param {number} ms */
  pan(ms) {
    this.isFollowing = false;
    this.from += ms;
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  center(from, to) {
    this.isFollowing = false;
    this.from = (from + to) / 2 - this.span / 2;
  }

  /**
   * @param {number} oldest
   * @param {number} newest
   */
  fit(oldest, newest) {
    this.span = Math.min(MAX_SPAN_MS, Math.max(MIN_SPAN_MS, (newest - oldest) / (1 - 2 * MARGIN)));
    this.from = oldest - this.span * MARGIN;
  }

  /**
   * Pixels from the left edge.
   * @param {number} at
   * @param {number} width
   */
  place(at, width) {
    return ((at - this.from) / this.span) * width;
  }
}

/**
 * Ticks at round clock times, at least `gap` pixels apart.
 * @param {TimeScale} scale
 * @param {number} width
 * @param {number} [gap]
 */
export function ticks(scale, width, gap = 96) {
  const step = TICK_STEPS.find((each) => (each / scale.span) * width >= gap) ?? TICK_STEPS[TICK_STEPS.length - 1];
  const offset = new Date(scale.from).getTimezoneOffset() * 60_000;
  const first = Math.ceil((scale.from - offset) / step) * step + offset;
  /** @type {Tick[]} */
  const found = [];
  for (let at = first; at <= scale.to && found.length < 60; at += step)
    found.push({ at, x: scale.place(at, width), step });
  return found;
}

/** @param {{ at: number, step: number }} tick */
export function tickLabel({ at, step }) {
  const date = new Date(at);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 864e5) return date.toLocaleDateString(undefined, { month: "short", day: "numeric" });
  if (step >= 60_000) return minutes;
  const seconds = `${minutes}:${two(date.getSeconds())}`;
  return step >= 1000 ? seconds : `${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")} s`;
}
