// Between RFC 3339 and what a datetime-local input holds.

const two = (number) => String(Math.abs(number)).padStart(2, "0");

/** "2026-03-01T14:30" as the reader's clock means it, with the offset that holds on that day. */
export function withOffset(local) {
  const date = new Date(local);
  if (Number.isNaN(date.getTime())) return null;
  const minutes = -date.getTimezoneOffset();
  const offset = `${minutes < 0 ? "-" : "+"}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`;
  const seconds = /T\d\d:\d\d$/.test(local) ? `${local}:00` : local;
  return `${seconds}${offset}`;
}

export function toLocal(rfc3339) {
  const date = new Date(rfc3339);
  if (Number.isNaN(date.getTime())) return "";
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const seconds = date.getSeconds() ? `:${two(date.getSeconds())}` : "";
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}${seconds}`;
}
