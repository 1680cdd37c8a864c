// Short facts in a row. A line breaks between them, never inside one.

import { bdi, fill, h } from "./dom.js";
import { oneLine } from "../text/display-text.js";

const shown = new WeakMap();

export function setFacts(element, facts) {
  const words = facts.filter(Boolean).map((fact) => oneLine(fact, 120));
  const all = words.join("\n");
  if (shown.get(element) === all) return;
  shown.set(element, all);
  fill(
    element,
    words.map((fact) => h("span", { class: "fact" }, bdi(fact))),
  );
}
