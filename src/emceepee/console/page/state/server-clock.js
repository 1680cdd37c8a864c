// The server's time, and one shared beat for everything that counts down.

let ahead = 0;
const listeners = new Set();

/** Epoch milliseconds by the server's clock, which all timestamps come from. */
export const now = () => Date.now() + ahead;

export function adjustTo(serverNow) {
  if (Number.isFinite(serverNow)) ahead = serverNow - Date.now();
}

/** Call once a second while the page is looked at. */
export function everySecond(listener) {
  listeners.add(listener);
}

setInterval(() => {
  if (!document.hidden) for (const listener of listeners) listener();
}, 1000);
