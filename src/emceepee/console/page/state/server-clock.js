// The server's time, and one shared timer for all countdowns.

let offsetMs = 0;
/** @type {Set<() => void>} */
const listeners = new Set();

/** Epoch milliseconds by the server's clock, which is the source of all timestamps. */
export const serverNow = () => Date.now() + offsetMs;

/** @param {number} serverTime */
export function synchronize(serverTime) {
  if (Number.isFinite(serverTime)) offsetMs = serverTime - Date.now();
}

/**
 * Calls the function once per second while the page is visible.
 * @param {() => void} listener
 */
export function everySecond(listener) {
  listeners.add(listener);
}

setInterval(() => {
  if (!document.hidden) for (const listener of listeners) listener();
}, 1000);
