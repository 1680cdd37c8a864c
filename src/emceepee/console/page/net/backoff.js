// Waiting between tries: longer each time, and not at all once the network or the reader is back.

const FIRST_MS = 500;
const LONGEST_MS = 10_000;

const nudges = new Set();
const nudge = () => {
  for (const wake of [...nudges]) wake();
};
addEventListener("online", nudge);
addEventListener("pageshow", nudge);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) nudge();
});

export class Backoff {
  #tries = 0;

  get delay() {
    return Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#tries);
  }

  reset() {
    this.#tries = 0;
  }

  /** Resolves after the delay, or at once when the network returns or the page is looked at again. */
  wait() {
    const delay = this.delay;
    this.#tries += 1;
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        nudges.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, delay);
      nudges.add(wake);
    });
  }
}

export const retryNow = nudge;
