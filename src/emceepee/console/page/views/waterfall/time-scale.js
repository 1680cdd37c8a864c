// The time axis: which part of time is in view, and where its marks stand. Pure: time comes in as an argument.

export const SHORTEST_MS = 20;
export const LONGEST_MS = 7 * 86_400_000;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5,
  432e5, 864e5,
];
const EDGE = 0.03; // so that the newest bar does not touch the border

export class TimeWindow {
  from = 0;
  span = 60_000;
  isFollowing = true;

  get to() {
    return this.from + this.span;
  }

  /** Keep the newest moment at the right edge. */
  follow(newest) {
    if (this.isFollowing) this.from = newest + this.span * EDGE - this.span;
  }

  /** `at` (0 left … 1 right) keeps its place. */
  zoom(factor, at = 0.5) {
    const span = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, this.span * factor));
    const anchor = this.isFollowing ? 1 - EDGE : at;
    this.from += (this.span - span) * anchor;
    this.span = span;
  }

  pan(ms) {
    this.isFollowing = false;
    this.from += ms;
  }

  center(from, to) {
    this.isFollowing = false;
    this.from = (from + to) / 2 - this.span / 2;
  }

  fit(oldest, newest) {
    this.span = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (newest - oldest) / (1 - 2 * EDGE)));
    this.from = oldest - this.span * EDGE;
  }

  /** Pixels from the left edge. */
  place(at, width) {
    return ((at - this.from) / this.span) * width;
  }
}

/** Marks at round clock times, at least `gap` pixels apart. */
export function marks(window, width, gap = 96) {
  const step = STEPS.find((each) => (each / window.span) * width >= gap) ?? STEPS.at(-1);
  const offset = new Date(window.from).getTimezoneOffset() * 60_000;
  const first = Math.ceil((window.from - offset) / step) * step + offset;
  const found = [];
  for (let at = first; at <= window.to && found.length < 60; at += step)
    found.push({ at, x: window.place(at, width), step });
  return found;
}

export function markLabel({ at, step }) {
  const date = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 864e5) return date.toLocaleDateString(undefined, { month: "short", day: "numeric" });
  if (step >= 60_000) return minutes;
  const seconds = `${minutes}:${two(date.getSeconds())}`;
  return step >= 1000 ? seconds : `${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")} s`;
}
