// The clipboard, with a fallback if the browser denies access.

import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { showToast } from "./toast.js";

/**
 * @param {string} text
 * @param {string} what
 * @param {string} [warning] A note for the person who pastes it.
 */
export async function copyToClipboard(text, what, warning = "") {
  if (await writeToClipboard(text)) showToast(`${what} copied.${warning}`);
  else showForManualCopy(text, what);
}

/** @param {string} text */
async function writeToClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** @param {string} text */
function copyBySelection(text) {
  const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
  }
}

/**
 * @param {string} text
 * @param {string} what
 */
function showForManualCopy(text, what) {
  const area = h("textarea", { class: "input code", rows: "10", readonly: true, "aria-label": what });
  area.value = text;
  openDialog(`Copy ${what.toLowerCase()}`, [
    h("p", null, "The browser refused the clipboard. Copy the text from here."),
    area,
  ]);
  area.select();
}
