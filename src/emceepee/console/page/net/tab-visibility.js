// Hidden tabs close their connection to the feed after a while. One of them keeps its connection, to count questions in
// its title and to send notifications.

const SUSPEND_AFTER_MS = 120_000;

/**
 * Calls `onSuspend` when this tab has been hidden for long and another hidden tab keeps watching.
 * @param {() => void} onSuspend
 */
export function suspendWhenHidden(onSuspend) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {(() => void) | null} */
  let releaseLock = null;
  const hide = () => {
    timer ??= setTimeout(lockOrSuspend, SUSPEND_AFTER_MS);
  };
  const lockOrSuspend = () => {
    if (!navigator.locks || releaseLock) return;
    navigator.locks.request("emceepee-watcher", { ifAvailable: true }, (lock) => {
      if (lock !== null) return /** @type {Promise<void>} */ (new Promise((resolve) => (releaseLock = resolve)));
      onSuspend();
      return undefined;
    });
  };
  const show = () => {
    clearTimeout(timer);
    timer = undefined;
    releaseLock?.();
    releaseLock = null;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? hide() : show()));
  if (document.hidden) hide();
}

/** @returns {Promise<void>} */
export const untilVisible = () =>
  new Promise((resolve) => {
    if (!document.hidden) resolve();
    else document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
