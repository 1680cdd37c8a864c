// Short messages at the edge of the page.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const SHOWN_MS = 5000;
const MOST = 4;

/** `kind` is info or error; a `lasting` notice stays until it is dismissed. */
export function notice(text, { kind = "info", lasting = false } = {}) {
  const region = document.getElementById("notices");
  const dismiss = () => element.remove();
  const close = h(
    "button",
    { type: "button", class: "button quiet square", "aria-label": "Dismiss", onclick: dismiss },
    icon("close", 16),
  );
  const role = kind === "error" ? "alert" : "status";
  const element = h("div", { class: `notice ${kind}`, testid: "notice", role }, h("p", null, text), close);
  region.append(element);
  while (region.children.length > MOST) region.firstChild.remove();
  if (!lasting) leaveLater(element);
}

function leaveLater(element) {
  let timer = setTimeout(() => element.remove(), SHOWN_MS);
  element.addEventListener("pointerenter", () => clearTimeout(timer));
  element.addEventListener("pointerleave", () => {
    timer = setTimeout(() => element.remove(), SHOWN_MS);
  });
}

/** Tell those who cannot see the page change. */
export function announce(text) {
  const announcer = document.getElementById("announcer");
  announcer.textContent = "";
  setTimeout(() => {
    announcer.textContent = text;
  }, 50);
}
