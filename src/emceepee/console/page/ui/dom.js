// The only place that makes elements. Text goes in as text nodes, so nothing a server says is ever parsed as markup.

import { clipped, oneLine, visible } from "../text/display-text.js";

const SVG = "http://www.w3.org/2000/svg";
const OPENABLE = /^(https?:\/\/|#|\/(?!\/))/i;
const SHOWN = new Set(["title", "aria-label", "placeholder", "alt"]);
const MOST_SHOWN = 600;
const MOST_NAME = 80;
const keyed = new WeakMap();

/** An element. Keys of `props`: attributes, `class`, `testid`, `dataset`, and listeners as `onclick`. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) put(element, name, value);
  append(element, children);
  return element;
}

function put(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else if (name === "testid") element.dataset.testid = value;
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "href" && !OPENABLE.test(value)) return;
  else if (SHOWN.has(name)) element.setAttribute(name, visible(clipped(value, MOST_SHOWN)));
  else element.setAttribute(name, value === true ? "" : String(value));
}

export function append(element, children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
  return element;
}

/** Server text that cannot reorder what stands beside it. */
export const bdi = (text, props) => h("bdi", props, text);

/** A name given by a server, on one line; all of it shows when pointed at. */
export const nameOf = (text, props) =>
  bdi(oneLine(text ?? "", MOST_NAME), { title: isLong(text) ? text : null, ...props });
const isLong = (text) => String(text ?? "").length > MOST_NAME;

export const svg = (size, ...paths) => {
  const element = document.createElementNS(SVG, "svg");
  const attributes = { width: size, height: size, viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" };
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const path of paths) {
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", path);
    element.append(line);
  }
  return element;
};

/** Change text only when it differs: a selection inside survives, and nothing is laid out again in vain. */
export function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

export function setAttribute(element, name, value) {
  if (value === undefined || value === null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const shown = SHOWN.has(name) ? visible(clipped(value, MOST_SHOWN)) : value === true ? "" : String(value);
  if (element.getAttribute(name) !== shown) element.setAttribute(name, shown);
}

export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/**
 * Let `parent` show `items` in order. Elements are kept by key and never moved while their order stands, so focus,
 * selection and half-filled forms survive. `make(item)` gives `{ element, update? }`.
 */
export function reconcile(parent, items, keyOf, make) {
  const before = keyed.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!after.has(key)) after.set(key, before.get(key) ?? make(item));
  }
  for (const [key, part] of before) if (!after.has(key)) part.element.remove();
  keyed.set(parent, after);
  let next = parent.firstChild;
  for (const item of items) {
    const part = after.get(keyOf(item));
    if (part.element === next) next = next.nextSibling;
    else parent.insertBefore(part.element, next);
    part.update?.(item);
  }
}
