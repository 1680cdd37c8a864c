// Real <dialog> elements: the browser keeps the focus inside and gives it back.

import { h } from "./dom.js";

export function dialog(title, body, buttons) {
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

/** Whether the person went on. */
export function confirmed(title, text, goOn) {
  return new Promise((resolve) => {
    const answer = (value) => () => {
      resolve(value);
      element.close();
    };
    const element = dialog(title, h("p", null, text), [
      h("button", { type: "button", class: "button danger", onclick: answer(true) }, goOn),
      h("button", { type: "button", class: "button", onclick: answer(false), autofocus: true }, "Keep it"),
    ]);
    element.addEventListener("close", () => resolve(false));
  });
}
