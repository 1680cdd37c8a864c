// Formats numbers and times for people.

const clockTime = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const dayAndTime = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hour12: false,
});

/** @param {number} ms */
export function formatDuration(ms) {
  if (!Number.isFinite(ms)) return "–";
  const value = Math.max(0, ms);
  if (value < 0.05) return "0 ms";
  if (value < 1) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1000).toFixed(2)} s`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  return longDuration(value);
}

/** @param {number} ms */
function longDuration(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} d`;
}

/**
 * Rounded to whole seconds, for values that count down or up in front of the reader.
 * @param {number} ms
 */
export function formatCoarse(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : longDuration(ms).replace(/ 0 min$/, "");
}

/** @param {string | number} when */
export const toMillis = (when) => (typeof when === "number" ? when : Date.parse(when));

/** @param {string | number} when */
export function formatTime(when) {
  const at = toMillis(when);
  if (!Number.isFinite(at)) return "–";
  return new Date(at).toDateString() === new Date().toDateString() ? clockTime.format(at) : dayAndTime.format(at);
}

/** @param {string | number} when */
export function formatPreciseTime(when) {
  const at = toMillis(when);
  return Number.isFinite(at) ? `${clockTime.format(at)}.${String(Math.floor(at) % 1000).padStart(3, "0")}` : "–";
}

/** @param {string | number} when */
export function formatFullTime(when) {
  const at = toMillis(when);
  return Number.isFinite(at) ? new Date(at).toLocaleString() : "";
}

/** @param {string} word */
export const capitalize = (word) => word.slice(0, 1).toUpperCase() + word.slice(1);

/**
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export const pluralize = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** @param {number} characters */
export function formatSize(characters) {
  if (characters < 1000) return pluralize(characters, "character");
  return characters < 1e6 ? `${(characters / 1000).toFixed(0)} kB` : `${(characters / 1e6).toFixed(1)} MB`;
}
