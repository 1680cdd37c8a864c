// Numbers and times in words a person reads at a glance.

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

export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  const value = Math.max(0, ms);
  if (value < 0.05) return "0 ms";
  if (value < 1) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1000).toFixed(2)} s`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  return longDuration(value);
}

function longDuration(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} d`;
}

/** Whole seconds at most: for things that count down or up in front of the reader. */
export function roughly(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : longDuration(ms).replace(/ 0 min$/, "");
}

export const millis = (when) => (typeof when === "number" ? when : Date.parse(when));

export function time(when) {
  const at = millis(when);
  if (!Number.isFinite(at)) return "–";
  return new Date(at).toDateString() === new Date().toDateString() ? clockTime.format(at) : dayAndTime.format(at);
}

export function preciseTime(when) {
  const at = millis(when);
  return Number.isFinite(at) ? `${clockTime.format(at)}.${String(Math.floor(at) % 1000).padStart(3, "0")}` : "–";
}

export function fullTime(when) {
  const at = millis(when);
  return Number.isFinite(at) ? new Date(at).toLocaleString() : "";
}

export const capital = (word) => word.slice(0, 1).toUpperCase() + word.slice(1);

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function size(characters) {
  if (characters < 1000) return count(characters, "character");
  return characters < 1e6 ? `${(characters / 1000).toFixed(0)} kB` : `${(characters / 1e6).toFixed(1)} MB`;
}
