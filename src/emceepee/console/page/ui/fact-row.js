// Short facts in a row. Lines break between facts, never inside one.

import { singleLine } from "../lib/display-text.js";
import { bdi, h, replaceContent } from "./dom.js";

/** @type {WeakMap<Element, string>} */
const shown = new WeakMap();

/**
 * @param {Element} element
 * @param {unknown[]} facts
 */
export function setFactRow(element, facts) {
  const texts = facts.filter(Boolean).map((fact) => singleLine(fact, 120));
  const all = texts.join("\n");
  if (shown.get(element) === all) return;
  shown.set(element, all);
  replaceContent(
    element,
    texts.map((fact) => h("span", { class: "fact" }, bdi(fact))),
  );
}
