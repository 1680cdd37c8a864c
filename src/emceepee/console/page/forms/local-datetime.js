// Converts between RFC 3339 and the value of a datetime-local input.

/** @param {number} number */
const two = (number) => String(Math.abs(number)).padStart(2, "0");

/**
 * "2026-03-01T14:30" in the reader's time zone, with the offset of that day.
 * @param {string} local
 */
export function toRfc3339(local) {
  const date = new Date(local);
  if (Number.isNaN(date.getTime())) return null;
  const minutes = -date.getTimezoneOffset();
  const offset = `${minutes < 0 ? "-" : "+"}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`;
  const seconds = /T\d\d:\d\d$/.test(local) ? `${local}:00` : local;
  return `${seconds}${offset}`;
}

/** @param {string} rfc3339 */
export function toLocalInput(rfc3339) {
  const date = new Date(rfc3339);
  if (Number.isNaN(date.getTime())) return "";
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const seconds = date.getSeconds() ? `:${two(date.getSeconds())}` : "";
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}${seconds}`;
}
