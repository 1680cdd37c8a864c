// The common part of events and logs: a long filtered list, newest first, of which only the newest part is drawn.

import { pluralize } from "../lib/format.js";
import { sessionName } from "../state/session-names.js";
import { Select, emptyState, searchBox, viewHeader } from "./controls.js";
import { h, reconcile, setText } from "./dom.js";

/**
 * @import { Store } from "../state/store.js"
 * @typedef {Wire.SessionEvent | Wire.Log} Entry
 */
/**
 * @template {Entry} T
 * @typedef {object} Filter
 * @property {string} label
 * @property {(items: T[]) => import("./controls.js").Option[]} options
 * @property {(item: T, value: string) => boolean} matches
 */
/**
 * @template {Entry} T
 * @typedef {object} ListSettings
 * @property {string} title
 * @property {string} unit
 * @property {import("../state/store.js").Topic} topic
 * @property {(store: Store) => T[]} items
 * @property {(item: T) => unknown} keyOf
 * @property {(item: T) => Element} make
 * @property {(item: T) => string} textOf What the search looks at.
 * @property {{ [name: string]: Filter<T> }} filters
 * @property {string} emptyTitle
 * @property {string} emptyText
 */

const PAGE_SIZE = 200;

/** @template {Entry} T */
export class FilteredList {
  #limit = PAGE_SIZE;
  /** @type {{ [name: string]: string }} */
  #selected = {};
  #search = "";

  /**
   * @param {Store} store
   * @param {ListSettings<T>} settings
   */
  constructor(store, settings) {
    this.store = store;
    this.settings = settings;
    const { title, topic, filters, emptyTitle, emptyText } = settings;
    this.search = searchBox("Search", `search-${topic}`, (text) => {
      this.#search = text.toLowerCase();
      this.#render();
    });
    this.selects = Object.entries(filters).map(([name, { label }]) => {
      const onChange = (/** @type {string} */ value) => {
        this.#selected[name] = value;
        this.#render();
      };
      return { name, select: new Select(label, { testid: `filter-${topic}-${name}`, onChange }) };
    });
    this.count = h("span", { class: "row-count" });
    this.rows = h("div", { class: `entry-list ${topic}` });
    this.more = h("button", { type: "button", class: "button", onclick: () => this.#showMore() }, "Show older");
    this.empty = emptyState(emptyTitle, h("p", null, emptyText));
    const controls = h(
      "div",
      { class: "filters" },
      this.search.element,
      this.selects.map(({ select }) => select.element),
    );
    const head = viewHeader(title, this.count);
    this.element = h(
      "section",
      { class: "view page", "aria-label": title },
      head,
      h("div", { class: "toolbar inline" }, controls),
      this.empty,
      this.rows,
      this.more,
    );
  }

  show() {
    this.#render();
  }

  /** @param {import("../state/store.js").Topics} topics */
  update(topics) {
    if (topics.has(this.settings.topic)) this.#render();
  }

  #showMore() {
    this.#limit += PAGE_SIZE;
    this.#render();
  }

  #render() {
    const { items, filters, unit, keyOf, make } = this.settings;
    const all = items(this.store);
    for (const { name, select } of this.selects) {
      select.setOptions(filters[name].options(all));
      this.#selected[name] = select.value;
    }
    /** @type {T[]} */
    const found = [];
    for (let index = all.length - 1; index >= 0; index -= 1) if (this.#matches(all[index])) found.push(all[index]);
    setText(
      this.count,
      found.length === all.length
        ? pluralize(all.length, unit)
        : `${found.length.toLocaleString("en")} of ${pluralize(all.length, unit)}`,
    );
    this.empty.hidden = found.length > 0 || !this.store.isReady;
    this.more.hidden = found.length <= this.#limit;
    reconcile(this.rows, found.slice(0, this.#limit), keyOf, (item) => ({ element: make(item) }));
  }

  /** @param {T} item */
  #matches(item) {
    for (const [name, { matches }] of Object.entries(this.settings.filters)) {
      if (this.#selected[name] && !matches(item, this.#selected[name])) return false;
    }
    return this.#search === "" || this.settings.textOf(item).toLowerCase().includes(this.#search);
  }
}

/**
 * @param {any} value
 * @returns {import("./controls.js").Option}
 */
const asOption = (value) => [value, value];

/**
 * @template T
 * @param {T[]} all
 * @param {(item: T) => string | null | undefined} of
 * @param {string} any
 * @returns {import("./controls.js").Option[]}
 */
export const distinctOptions = (all, of, any) => [
  ["", any],
  ...[...new Set(all.map(of))]
    .filter((value) => typeof value === "string" && value !== "")
    .sort()
    .map(asOption),
];

/**
 * @param {Store} store
 * @returns {Filter<any>}
 */
export function sessionFilter(store) {
  return {
    label: "Session",
    options: (all) => [
      ["", "All sessions"],
      ...[...new Set(all.map((item) => item.session))].map(
        (id) => /** @type {import("./controls.js").Option} */ ([id, sessionName(store, id)]),
      ),
    ],
    matches: (item, value) => item.session === value,
  };
}

/** @returns {Filter<any>} */
export function serverFilter() {
  return {
    label: "Server",
    options: (all) => distinctOptions(all, (item) => item.server, "All servers"),
    matches: (item, value) => item.server === value,
  };
}
