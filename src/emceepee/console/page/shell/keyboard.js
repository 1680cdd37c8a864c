// Keyboard shortcuts. They are disabled while a person types text.

import { openDialog } from "../ui/dialog.js";
import { h } from "../ui/dom.js";
import { VIEWS } from "./sidebar.js";

/**
 * @import { WaterfallView } from "../views/waterfall/waterfall.js"
 */

/** @type {{ [key: string]: string }} */
const CHORD_VIEWS = {
  w: "waterfall",
  o: "overview",
  q: "questions",
  v: "servers",
  s: "sessions",
  t: "tasks",
  m: "timers",
  e: "events",
  l: "logs",
};
const CHORD_MS = 1500;
const SHORTCUTS = [
  ["1 … 9", "Go to a view"],
  ["g then w o q v s t m e l", "Go to Waterfall, Overview, Questions, serVers, Sessions, Tasks, tiMers, Events, Logs"],
  ["/", "Search"],
  ["↑ ↓ PgUp PgDn Home End", "Move along the requests"],
  ["Enter", "Open a request"],
  ["Esc", "Close what is open"],
  ["+ − 0", "Zoom in, out, fit all"],
  ["← →", "Move along the time axis"],
  ["f", "Follow what is live"],
  ["c", "Center the time axis on the chosen request"],
  ["p", "Pause, and go on"],
  ["?", "This help"],
];

export function showShortcuts() {
  const rows = SHORTCUTS.map(([keys, what]) =>
    h("tr", null, h("th", { scope: "row" }, h("kbd", null, keys)), h("td", null, what)),
  );
  openDialog("Keyboard shortcuts", h("table", { class: "shortcuts" }, h("tbody", null, rows)));
}

/**
 * The field that receives the typed text, if any.
 * @param {EventTarget | null} target
 * @returns {HTMLElement | null}
 */
const textField = (target) =>
  target instanceof Element ? target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") : null;

/**
 * `current()` is the shown view's name; `waterfall()` is moved by the keys that only make sense there.
 * @param {{ current: () => string, waterfall: () => WaterfallView }} settings
 */
export function enableShortcuts({ current, waterfall }) {
  let chordUntil = 0;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const field = textField(event.target);
    if (field) {
      if (event.key === "Escape") field.blur();
      return;
    }
    const isChord = event.timeStamp < chordUntil;
    chordUntil = 0;
    if (isChord && event.key in CHORD_VIEWS) goTo(CHORD_VIEWS[event.key]);
    else if (event.key === "g") chordUntil = event.timeStamp + CHORD_MS;
    else if (/^[1-9]$/.test(event.key)) goTo(VIEWS[Number(event.key) - 1][0]);
    else if (event.key === "?") showShortcuts();
    else if (event.key === "/") focusSearch();
    else if (current() !== "waterfall" || !handleWaterfallKey(event.key, waterfall())) return;
    event.preventDefault();
  });
}

/** @param {string} name */
const goTo = (name) => {
  location.hash = `#${name}`;
};

function focusSearch() {
  /** @type {HTMLElement | null} */
  const search = document.querySelector("#main input[type=search]");
  search?.focus();
}

/**
 * Whether the key is a shortcut.
 * @param {string} key
 * @param {WaterfallView} waterfall
 */
function handleWaterfallKey(key, waterfall) {
  /** @type {{ [key: string]: () => void }} */
  const actions = {
    "+": () => waterfall.zoom(1 / 1.6),
    "=": () => waterfall.zoom(1 / 1.6),
    "-": () => waterfall.zoom(1.6),
    0: () => waterfall.fit(),
    p: () => waterfall.togglePause(),
    f: () => waterfall.toggleFollow(),
    c: () => waterfall.centerOnActive(),
    ArrowLeft: () => waterfall.panBy(-120),
    ArrowRight: () => waterfall.panBy(120),
    Escape: () => waterfall.close(),
  };
  if (!Object.hasOwn(actions, key)) return false;
  actions[key]();
  return true;
}
