// The only module that creates elements. Text becomes text nodes, so text from servers is never parsed as markup.

import { revealInvisible, singleLine, truncate } from "../lib/display-text.js";

/**
 * @typedef {Node | string | number | boolean | null | undefined} Child
 * @typedef {Child | Children[]} Children
 * @typedef {{ [name: string]: any }} Props
 * @typedef {{ element: Element, update?: (item: any) => void }} Part What shows one item of a list.
 */

const SVG = "http://www.w3.org/2000/svg";
const SAFE_HREF = /^(https?:\/\/|#|\/(?!\/))/i;
const TEXT_ATTRIBUTES = new Set(["title", "aria-label", "placeholder", "alt"]);
const MAX_ATTRIBUTE = 600;
const MAX_NAME = 80;
/** @type {WeakMap<Node, Map<unknown, Part>>} */
const partsByParent = new WeakMap();

/**
 * An element. Keys of `props`: attributes, `class`, `testid`, `dataset`, and listeners as `onclick`.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props | null} [props]
 * @param {...Children} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

/**
 * @param {HTMLElement} element
 * @param {string} name
 * @param {any} value
 */
function setProp(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else if (name === "testid") element.dataset.testid = value;
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "href" && !SAFE_HREF.test(value)) return;
  else if (TEXT_ATTRIBUTES.has(name)) element.setAttribute(name, revealInvisible(truncate(value, MAX_ATTRIBUTE)));
  else element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * @template {Element | DocumentFragment} Parent
 * @param {Parent} element
 * @param {Children[]} children
 * @returns {Parent}
 */
export function append(element, children) {
  for (const child of /** @type {Child[]} */ (/** @type {unknown[]} */ (children).flat(Infinity))) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : revealInvisible(child));
  }
  return element;
}

/**
 * An element of index.html.
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`There is no #${id} in the page.`);
  return element;
}

/**
 * Server text that cannot reorder neighboring text.
 * @param {Child} text
 * @param {Props} [props]
 */
export const bdi = (text, props) => h("bdi", props, text);

/**
 * A name given by a server, on one line. A tooltip shows all of it.
 * @param {string | null | undefined} text
 * @param {Props} [props]
 */
export const nameLabel = (text, props) =>
  bdi(singleLine(text ?? "", MAX_NAME), { title: isLong(text) ? text : null, ...props });
/** @param {unknown} text */
const isLong = (text) => String(text ?? "").length > MAX_NAME;

/**
 * @param {number} size
 * @param {...string} paths
 */
export const svg = (size, ...paths) => {
  const element = document.createElementNS(SVG, "svg");
  const attributes = { width: size, height: size, viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" };
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  for (const path of paths) {
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", path);
    element.append(line);
  }
  return element;
};

/**
 * An element of a drawing.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {{ [name: string]: string }} attributes
 * @param {...SVGElement} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svgElement(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Change the text only if it differs, to preserve a selection and avoid a layout.
 * @param {Element} element
 * @param {unknown} text
 */
export function setText(element, text) {
  const shown = revealInvisible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {unknown} value
 */
export function setAttribute(element, name, value) {
  if (value === undefined || value === null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const shown = TEXT_ATTRIBUTES.has(name)
    ? revealInvisible(truncate(value, MAX_ATTRIBUTE))
    : value === true
      ? ""
      : String(value);
  if (element.getAttribute(name) !== shown) element.setAttribute(name, shown);
}

/**
 * @template {Element} Parent
 * @param {Parent} element
 * @param {...Children} children
 * @returns {Parent}
 */
export function replaceContent(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/**
 * Make `parent` show `items` in order. Elements are identified by key and not moved while their order is unchanged, so
 * focus, selection, and half-filled forms survive. `make(item)` returns `{ element, update? }`.
 * @template Item
 * @param {Element} parent
 * @param {Item[]} items
 * @param {(item: Item) => unknown} keyOf
 * @param {(item: Item) => Part} make
 */
export function reconcile(parent, items, keyOf, make) {
  const before = partsByParent.get(parent) ?? new Map();
  /** @type {Map<unknown, Part>} */
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!after.has(key)) after.set(key, before.get(key) ?? make(item));
  }
  for (const [key, part] of before) if (!after.has(key)) part.element.remove();
  partsByParent.set(parent, after);
  let next = parent.firstChild;
  for (const item of items) {
    const part = /** @type {Part} */ (after.get(keyOf(item)));
    if (part.element === next) next = part.element.nextSibling;
    else parent.insertBefore(part.element, next);
    part.update?.(item);
  }
}
