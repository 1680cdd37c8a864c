// Keyboard shortcuts. They never take a key from someone who is typing.

import { dialog } from "../ui/dialog.js";
import { h } from "../ui/dom.js";
import { VIEWS } from "./sidebar.js";

const AFTER_G = {
  w: "waterfall",
  q: "questions",
  v: "servers",
  s: "sessions",
  t: "tasks",
  m: "timers",
  e: "events",
  l: "logs",
};
const CHORD_MS = 1500;
const HELP = [
  ["1 … 8", "Go to a view"],
  ["g then w q v s t m e l", "Go to Waterfall, Questions, serVers, Sessions, Tasks, tiMers, Events, Logs"],
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

export function showHelp() {
  const rows = HELP.map(([keys, what]) =>
    h("tr", null, h("th", { scope: "row" }, h("kbd", null, keys)), h("td", null, what)),
  );
  dialog("Keyboard shortcuts", h("table", { class: "help" }, h("tbody", null, rows)));
}

const isTyping = (target) =>
  target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

/** `current()` is the shown view's name; `waterfall()` is moved by the keys that only make sense there. */
export function listenToKeys({ current, waterfall }) {
  let chordUntil = 0;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isChord = event.timeStamp < chordUntil;
    chordUntil = 0;
    if (isChord && event.key in AFTER_G) go(AFTER_G[event.key]);
    else if (event.key === "g") chordUntil = event.timeStamp + CHORD_MS;
    else if (/^[1-8]$/.test(event.key)) go(VIEWS[Number(event.key) - 1][0]);
    else if (event.key === "?") showHelp();
    else if (event.key === "/") focusSearch();
    else if (current() !== "waterfall" || !onWaterfall(event.key, waterfall())) return;
    event.preventDefault();
  });
}

const go = (name) => {
  location.hash = `#${name}`;
};

function focusSearch() {
  document.querySelector("#main input[type=search]")?.focus();
}

/** Whether the key meant something. */
function onWaterfall(key, waterfall) {
  const verbs = {
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
  if (!Object.hasOwn(verbs, key)) return false;
  verbs[key]();
  return true;
}
