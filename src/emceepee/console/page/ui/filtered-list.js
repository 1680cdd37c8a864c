// What events and logs have in common: a long list, newest first, with filters, of which only the newest part is drawn.

import { Choice, emptyState, searchBox, viewHead } from "./controls.js";
import { h, reconcile, setText } from "./dom.js";
import { count } from "../text/format.js";
import { sessionName } from "../state/session-names.js";

const STEP = 200;

export class StreamView {
  #most = STEP;
  #chosen = {};
  #search = "";

  /** `choices`: name → { label, options(items), fits(item, value) }; the search looks at `textOf(item)`. */
  constructor(store, { title, unit, topic, items, keyOf, make, textOf, choices, emptyTitle, emptyText }) {
    Object.assign(this, { store, unit, topic, items, keyOf, make, textOf, choices });
    const again = () => this.#render();
    this.search = searchBox("Search", `search-${topic}`, (text) => {
      this.#search = text.toLowerCase();
      again();
    });
    this.selects = Object.entries(choices).map(([name, { label }]) => {
      const onChange = (value) => {
        this.#chosen[name] = value;
        again();
      };
      return [name, new Choice(label, { testid: `filter-${topic}-${name}`, onChange })];
    });
    this.count = h("span", { class: "row-count" });
    this.rows = h("div", { class: `stream ${topic}` });
    this.more = h("button", { type: "button", class: "button", onclick: () => this.#showMore() }, "Show older");
    this.empty = emptyState(emptyTitle, h("p", null, emptyText));
    const filters = h(
      "div",
      { class: "filters" },
      this.search.element,
      this.selects.map(([, choice]) => choice.element),
    );
    const head = viewHead(title, this.count);
    this.element = h(
      "section",
      { class: "view page", "aria-label": title },
      head,
      h("div", { class: "toolbar inline" }, filters),
      this.empty,
      this.rows,
      this.more,
    );
  }

  show() {
    this.#render();
  }

  update(topics) {
    if (topics.has(this.topic)) this.#render();
  }

  #showMore() {
    this.#most += STEP;
    this.#render();
  }

  #render() {
    const all = this.items(this.store);
    for (const [name, choice] of this.selects) {
      choice.setOptions(this.choices[name].options(all));
      this.#chosen[name] = choice.value;
    }
    const found = [];
    for (let index = all.length - 1; index >= 0; index -= 1) if (this.#fits(all[index])) found.push(all[index]);
    setText(
      this.count,
      found.length === all.length
        ? count(all.length, this.unit)
        : `${found.length.toLocaleString("en")} of ${count(all.length, this.unit)}`,
    );
    this.empty.hidden = found.length > 0 || !this.store.isReady;
    this.more.hidden = found.length <= this.#most;
    reconcile(this.rows, found.slice(0, this.#most), this.keyOf, (item) => ({ element: this.make(item) }));
  }

  #fits(item) {
    for (const [name, { fits }] of Object.entries(this.choices)) {
      if (this.#chosen[name] && !fits(item, this.#chosen[name])) return false;
    }
    return this.#search === "" || this.textOf(item).toLowerCase().includes(this.#search);
  }
}

export const distinct = (all, of, any) => [
  ["", any],
  ...[...new Set(all.map(of).filter(Boolean))].sort().map((value) => [value, value]),
];

export function sessionChoice(store) {
  return {
    label: "Session",
    options: (all) => [
      ["", "All sessions"],
      ...[...new Set(all.map((item) => item.session))].map((id) => [id, sessionName(store, id)]),
    ],
    fits: (item, value) => item.session === value,
  };
}

export function serverChoice() {
  return {
    label: "Server",
    options: (all) => distinct(all, (item) => item.server, "All servers"),
    fits: (item, value) => item.server === value,
  };
}
