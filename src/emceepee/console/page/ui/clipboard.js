// The clipboard, also where the browser refuses it.

import { h } from "./dom.js";
import { dialog } from "./dialog.js";
import { notice } from "./toast.js";

export async function copyText(text, what) {
  if (await written(text)) notice(`${what} copied.`);
  else offer(text, what);
}

async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

function copiedBySelection(text) {
  const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  let isCopied = false;
  try {
    isCopied = document.execCommand("copy");
  } catch {
    isCopied = false;
  }
  area.remove();
  focused?.focus?.();
  return isCopied;
}

function offer(text, what) {
  const area = h("textarea", { class: "input code", rows: "10", readonly: true, "aria-label": what });
  area.value = text;
  dialog(`Copy ${what.toLowerCase()}`, [
    h("p", null, "The browser refused the clipboard. Copy the text from here."),
    area,
  ]);
  area.select();
}
