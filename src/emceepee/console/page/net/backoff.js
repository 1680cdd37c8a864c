// Delays between attempts: each is longer, and none remains when the network or the reader returns.

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

/** @type {Set<() => void>} */
const wakeups = new Set();
const wakeAll = () => {
  for (const wake of [...wakeups]) wake();
};
addEventListener("online", wakeAll);
addEventListener("pageshow", wakeAll);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) wakeAll();
});

export class Backoff {
  #tries = 0;

  get delay() {
    return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#tries);
  }

  reset() {
    this.#tries = 0;
  }

  /**
   * Resolves after the delay, or at once when the network returns or the page becomes visible again.
   * @returns {Promise<void>}
   */
  wait() {
    const delay = this.delay;
    this.#tries += 1;
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        wakeups.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, delay);
      wakeups.add(wake);
    });
  }
}

export const retryNow = wakeAll;
