// Short messages at the edge of the page.

import { byId, h } from "./dom.js";
import { icon } from "./icons.js";

const VISIBLE_MS = 5000;
const MAX_TOASTS = 4;

/**
 * `kind` is info or error; a `sticky` one stays until it is dismissed.
 * @param {string} text
 * @param {{ kind?: "info" | "error", sticky?: boolean }} [options]
 */
export function showToast(text, { kind = "info", sticky = false } = {}) {
  const region = byId("toasts");
  const dismiss = () => element.remove();
  const close = h(
    "button",
    { type: "button", class: "button quiet icon-only", "aria-label": "Dismiss", onclick: dismiss },
    icon("close", 16),
  );
  const role = kind === "error" ? "alert" : "status";
  const element = h("div", { class: `toast ${kind}`, testid: "toast", role }, h("p", null, text), close);
  region.append(element);
  while (region.children.length > MAX_TOASTS) region.firstElementChild?.remove();
  if (!sticky) dismissLater(element);
}

/** @param {Element} element */
function dismissLater(element) {
  let timer = setTimeout(() => element.remove(), VISIBLE_MS);
  element.addEventListener("pointerenter", () => clearTimeout(timer));
  element.addEventListener("pointerleave", () => {
    timer = setTimeout(() => element.remove(), VISIBLE_MS);
  });
}

/**
 * Announce a change to screen readers.
 * @param {string} text
 */
export function announce(text) {
  const announcer = byId("announcer");
  announcer.textContent = "";
  setTimeout(() => {
    announcer.textContent = text;
  }, 50);
}
