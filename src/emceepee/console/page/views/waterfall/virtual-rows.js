// Renders only the visible rows: ten thousand requests cost as much as thirty.

import { h, setAttribute } from "../../ui/dom.js";
import { RequestRowView } from "./request-row.js";

/**
 * @import { Store } from "../../state/store.js"
 * @import { TimeScale } from "./time-scale.js"
 */
/**
 * @typedef {(id: string, how?: { byKeyboard?: boolean }) => void} OnOpen
 */

const OVERSCAN = 4;
const MAX_POOLED = 40;
const narrow = matchMedia("(max-width: 760px)");

export class VirtualRows {
  /** @type {string | null} */
  activeId = null;
  /** @type {string | null} */
  selectedId = null;
  /** @type {Wire.RequestRow[]} */
  #rows = [];
  /** @type {Map<string, RequestRowView>} */
  #views = new Map();
  /** @type {RequestRowView[]} */
  #pool = [];
  #showsSession = false;

  /**
   * @param {Store} store
   * @param {{ scroller: HTMLElement, onOpen: OnOpen, onMove: (id: string) => void }} settings
   */
  constructor(store, { scroller, onOpen, onMove }) {
    this.store = store;
    this.scroller = scroller;
    this.onOpen = onOpen;
    this.onMove = onMove;
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

  /**
   * @param {Wire.RequestRow[]} rows
   * @param {{ showsSession: boolean }} options
   */
  setRows(rows, { showsSession }) {
    const shift = this.#shiftOfFirstVisible(rows);
    this.#rows = rows;
    this.#showsSession = showsSession;
    this.element.style.height = `${rows.length * this.rowHeight}px`;
    setAttribute(this.scroller, "aria-rowcount", String(rows.length + 1));
    if (shift !== 0) this.scroller.scrollTop += shift * this.rowHeight;
  }

  /**
   * New rows appear at the top. The rows that are being read further down must not move.
   * @param {Wire.RequestRow[]} rows
   */
  #shiftOfFirstVisible(rows) {
    const index = Math.floor(this.scroller.scrollTop / this.rowHeight);
    const first = this.#rows[index];
    if (index === 0 || !first) return 0;
    const newIndex = rows.findIndex((row) => row.id === first.id);
    return newIndex === -1 ? 0 : newIndex - index;
  }

  /**
   * @param {TimeScale} scale
   * @param {number} width
   * @param {number} now
   */
  render(scale, width, now) {
    const height = this.rowHeight;
    const top = this.scroller.scrollTop;
    const begin = Math.max(0, Math.floor(top / height) - OVERSCAN);
    const end = Math.min(this.#rows.length, Math.ceil((top + this.scroller.clientHeight) / height) + OVERSCAN);
    /** @type {Map<string, number>} */
    const wanted = new Map();
    for (let index = begin; index < end; index += 1) wanted.set(this.#rows[index].id, index);
    const activeIndex = this.#activeIndex(wanted);
    if (activeIndex >= 0) wanted.set(this.#rows[activeIndex].id, activeIndex);
    for (const [id, view] of this.#views) if (!wanted.has(id)) this.#release(id, view);
    const inOrder = [...wanted].sort(([, one], [, other]) => one - other);
    let next = this.element.firstChild;
    for (const [id, index] of inOrder) {
      const view = this.#place(id, index, index === activeIndex, height);
      // Ordered as displayed. Existing rows keep their place, so that the focused one is not moved.
      if (view.element === next) next = view.element.nextSibling;
      else this.element.insertBefore(view.element, next);
      view.layout(scale, width, now);
    }
    for (const view of this.#pool) if (view.element.isConnected) view.element.remove();
  }

  /**
   * The row that Tab reaches stays in the page even when it is scrolled out of view, or the focus would be lost.
   * @param {Map<string, number>} visible
   */
  #activeIndex(visible) {
    if (this.#rows.length === 0) return -1;
    if (this.activeId === null) return 0;
    const index = visible.get(this.activeId) ?? this.#rows.findIndex((row) => row.id === this.activeId);
    return index === -1 ? 0 : index;
  }

  /**
   * @param {string} id
   * @param {number} index
   * @param {boolean} isActive
   * @param {number} height
   */
  #place(id, index, isActive, height) {
    let view = this.#views.get(id);
    if (!view) {
      view = this.#pool.pop() ?? new RequestRowView(this.store);
      this.#views.set(id, view);
    }
    view.element.style.transform = `translateY(${index * height}px)`;
    const isSelected = id === this.selectedId;
    view.update(this.#rows[index], { showsSession: this.#showsSession, index, isActive, isSelected });
    return view;
  }

  /**
   * It stays in the page until all rows are placed: most are reused at once, and removing and inserting them is slow.
   * @param {string} id
   * @param {RequestRowView} view
   */
  #release(id, view) {
    this.#views.delete(id);
    if (this.#pool.length < MAX_POOLED) this.#pool.push(view);
    else view.element.remove();
  }

  /** @param {FocusEvent} event */
  #onFocus(event) {
    const row = event.target instanceof Element ? event.target.closest(".row") : null;
    if (row) this.activeId = row.getAttribute("data-id");
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 2);
    /** @type {{ [key: string]: number }} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.moveBy(steps[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.activeId !== null) this.onOpen(this.activeId, { byKeyboard: true });
    }
  }

  /** @param {number} step */
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
    if (this.activeId !== null) this.#views.get(this.activeId)?.element.focus({ preventScroll: true });
  }

  /** @param {number} index */
  #scrollTo(index) {
    const head = 32; // the height of the sticky axis
    const top = index * this.rowHeight;
    const visible = this.scroller.clientHeight - head;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > this.scroller.scrollTop + visible)
      this.scroller.scrollTop = top + this.rowHeight - visible;
  }
}
