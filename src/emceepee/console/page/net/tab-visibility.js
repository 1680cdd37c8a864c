// Tabs that nobody looks at give their line to the feed back after a while. One of them keeps its own, so that
// somebody still counts questions in a title and sends notifications.

const REST_AFTER_MS = 120_000;

/** Calls `onRest` when this tab has been hidden for long and another hidden tab watches. */
export function restWhenHidden(onRest) {
  let timer = null;
  let letGo = null;
  const hide = () => {
    timer ??= setTimeout(watchOrRest, REST_AFTER_MS);
  };
  const watchOrRest = () => {
    if (!navigator.locks || letGo) return;
    navigator.locks.request("emceepee-watcher", { ifAvailable: true }, (lock) => {
      if (lock === null) onRest();
      else return new Promise((resolve) => (letGo = resolve));
    });
  };
  const show = () => {
    clearTimeout(timer);
    timer = null;
    letGo?.();
    letGo = null;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? hide() : show()));
  if (document.hidden) hide();
}

export const untilVisible = () =>
  new Promise((resolve) => {
    if (!document.hidden) resolve();
    else document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
