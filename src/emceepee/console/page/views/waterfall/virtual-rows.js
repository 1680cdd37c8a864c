// The rows that can be seen, and only those: ten thousand requests cost as much as thirty.

import { h, setAttribute } from "../../ui/dom.js";
import { RowView } from "./request-row.js";

const OVERSCAN = 4;
const MOST_SPARE = 40;
const narrow = matchMedia("(max-width: 760px)");

export class RowList {
  activeId = null;
  selectedId = null;
  #rows = [];
  #views = new Map();
  #spare = [];
  #showsSession = false;

  constructor(store, { scroller, onOpen }) {
    this.store = store;
    this.scroller = scroller;
    this.onOpen = onOpen;
    this.element = h("div", { class: "rows", role: "rowgroup" });
    this.element.addEventListener("keydown", (event) => this.#onKey(event));
    this.element.addEventListener("focusin", (event) => this.#onFocus(event));
  }

  get rowHeight() {
    return narrow.matches ? 56 : 34;
  }

  get rows() {
    return this.#rows;
  }

  setRows(rows, { showsSession }) {
    const shift = this.#shiftOfFirstVisible(rows);
    this.#rows = rows;
    this.#showsSession = showsSession;
    this.element.style.height = `${rows.length * this.rowHeight}px`;
    setAttribute(this.scroller, "aria-rowcount", String(rows.length + 1));
    if (shift !== 0) this.scroller.scrollTop += shift * this.rowHeight;
  }

  /** New rows come in at the top: what is being read further down must not slip away. */
  #shiftOfFirstVisible(rows) {
    const index = Math.floor(this.scroller.scrollTop / this.rowHeight);
    const first = this.#rows[index];
    if (index === 0 || !first) return 0;
    const newIndex = rows.findIndex((row) => row.id === first.id);
    return newIndex === -1 ? 0 : newIndex - index;
  }

  render(window, width, now) {
    const height = this.rowHeight;
    const top = this.scroller.scrollTop;
    const begin = Math.max(0, Math.floor(top / height) - OVERSCAN);
    const end = Math.min(this.#rows.length, Math.ceil((top + this.scroller.clientHeight) / height) + OVERSCAN);
    const wanted = new Map();
    for (let index = begin; index < end; index += 1) wanted.set(this.#rows[index].id, index);
    const activeIndex = this.#activeIndex(wanted);
    if (activeIndex >= 0) wanted.set(this.#rows[activeIndex].id, activeIndex);
    for (const [id, view] of this.#views) if (!wanted.has(id)) this.#release(id, view);
    const inOrder = [...wanted].sort(([, one], [, other]) => one - other);
    let next = this.element.firstChild;
    for (const [id, index] of inOrder) {
      const view = this.#place(id, index, index === activeIndex, height);
      // Read in the order it is seen. Rows that stay keep their place, so the focused one is not moved.
      if (view.element === next) next = next.nextSibling;
      else this.element.insertBefore(view.element, next);
      view.layout(window, width, now);
    }
    for (const view of this.#spare) if (view.element.isConnected) view.element.remove();
  }

  /** The row that Tab reaches, kept in the page even when it is scrolled away: focus must not fall to nowhere. */
  #activeIndex(visible) {
    if (this.#rows.length === 0) return -1;
    if (this.activeId === null) return 0;
    const index = visible.get(this.activeId) ?? this.#rows.findIndex((row) => row.id === this.activeId);
    return index === -1 ? 0 : index;
  }

  #place(id, index, isActive, height) {
    let view = this.#views.get(id);
    if (!view) {
      view = this.#spare.pop() ?? new RowView(this.store);
      this.#views.set(id, view);
    }
    view.element.style.transform = `translateY(${index * height}px)`;
    const isSelected = id === this.selectedId;
    view.update(this.#rows[index], { showsSession: this.#showsSession, index, isActive, isSelected });
    return view;
  }

  // It stays in the page until all rows are placed: most are needed at once, and taking them out and in is costly.
  #release(id, view) {
    this.#views.delete(id);
    if (this.#spare.length < MOST_SPARE) this.#spare.push(view);
    else view.element.remove();
  }

  #onFocus(event) {
    const row = event.target.closest(".row");
    if (row) this.activeId = row.dataset.id;
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.moveBy(steps[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.onOpen(this.activeId, { byKeyboard: true });
    }
  }

  moveBy(step) {
    const current = this.#rows.findIndex((row) => row.id === this.activeId);
    const index = Math.min(this.#rows.length - 1, Math.max(0, current + step));
    if (!this.#rows[index]) return;
    this.activeId = this.#rows[index].id;
    this.#scrollTo(index);
    this.onMove(this.activeId);
    this.focusActive();
  }

  focusActive() {
    this.#views.get(this.activeId)?.element.focus({ preventScroll: true });
  }

  #scrollTo(index) {
    const head = 32; // the sticky axis covers this much
    const top = index * this.rowHeight;
    const visible = this.scroller.clientHeight - head;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > this.scroller.scrollTop + visible)
      this.scroller.scrollTop = top + this.rowHeight - visible;
  }
}
