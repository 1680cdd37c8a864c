// Real <dialog> elements: the browser keeps the focus inside and gives it back.

import { h } from "./dom.js";

/**
 * @param {string} title
 * @param {import("./dom.js").Children} body
 * @param {HTMLButtonElement[]} [buttons]
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, body, buttons) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const close = () => element.close();
  const actions = buttons ?? [h("button", { type: "button", class: "button", onclick: close }, "Close")];
  const element = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "dialog-title" },
    heading,
    h("div", { class: "dialog-body" }, body),
    h("div", { class: "actions" }, actions),
  );
  element.addEventListener("close", () => element.remove());
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close();
  });
  document.body.append(element);
  element.showModal();
  return element;
}

/**
 * Whether the person confirmed.
 * @param {string} title
 * @param {string} text
 * @param {string} confirmLabel
 * @returns {Promise<boolean>}
 */
export function confirmAction(title, text, confirmLabel) {
  return new Promise((resolve) => {
    const answer = (/** @type {boolean} */ value) => () => {
      resolve(value);
      element.close();
    };
    const element = openDialog(title, h("p", null, text), [
      h("button", { type: "button", class: "button danger", onclick: answer(true) }, confirmLabel),
      h("button", { type: "button", class: "button", onclick: answer(false), autofocus: true }, "Keep it"),
    ]);
    element.addEventListener("close", () => resolve(false));
  });
}
