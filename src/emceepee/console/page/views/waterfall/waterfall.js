// The waterfall: requests over time, and the duration of each phase.

import { extent } from "../../state/request-phases.js";
import { serverNow } from "../../state/server-clock.js";
import { connectHint } from "../../ui/connect-hint.js";
import { emptyState } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { DetailPanel } from "./detail-panel.js";
import { legend } from "./legend.js";
import { enablePanZoom } from "./pan-zoom.js";
import { EMPTY_FILTER, filterRequests, isFiltering, readFilter, writeFilter } from "./request-filter.js";
import { TimeAxis } from "./time-axis.js";
import { TimeScale } from "./time-scale.js";
import { WaterfallToolbar } from "./toolbar.js";
import { VirtualRows } from "./virtual-rows.js";

/**
 * @import { Store, Topics } from "../../state/store.js"
 */
/**
 * The rows at the time when the view was paused.
 * @typedef {{ at: number, ordered: Wire.RequestRow[], ids: Set<string> }} Frozen
 */

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const FRAME_MS = 100; // ten frames per second are smooth enough for bars that grow
const REDUCED_FRAME_MS = 1000;
const RECENT_ROWS = 25;

export class WaterfallView {
  #filtered = filterRequests([], EMPTY_FILTER);
  #scale = new TimeScale();
  /** @type {Frozen | null} */
  #paused = null;
  #isShown = false;
  #lastFrame = 0;
  #isAnimating = false;
  #hasFitted = false;
  #scrolledTo = 0;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.tools = new WaterfallToolbar(store, {
      onFilter: () => {
        this.#writeAddress();
        this.update(new Set(["rows"]));
      },
      onPause: () => this.togglePause(),
      onFollow: () => this.toggleFollow(),
      onZoom: (factor) => this.zoom(factor),
      onFit: () => this.fit(),
    });
    this.axis = new TimeAxis();
    this.scroller = h("div", { class: "scroller", role: "grid", "aria-label": "Requests, newest first" });
    this.list = new VirtualRows(store, {
      scroller: this.scroller,
      onOpen: (id, how) => this.open(id, how),
      onMove: (id) => (this.detail.isOpen ? this.open(id) : this.render()),
    });
    this.scroller.append(this.axis.head, this.axis.gridlines, this.list.element);
    this.empty = h("div", { class: "waterfall-empty", hidden: true });
    this.detail = new DetailPanel(store, { onClose: () => this.#onDetailClosed() });
    const body = h(
      "div",
      { class: "waterfall-body" },
      h("div", { class: "chart" }, this.scroller, this.empty, legend(this.tools.count)),
      this.detail.element,
    );
    this.element = h(
      "section",
      { class: "view waterfall", "aria-label": "Waterfall" },
      h("h1", { class: "visually-hidden" }, "Waterfall"),
      this.tools.element,
      body,
    );
    this.#listen();
  }

  #listen() {
    this.scroller.addEventListener("scroll", () => this.render(), { passive: true });
    this.list.element.addEventListener("click", (event) => this.#onClick(event));
    new ResizeObserver(() => this.update(new Set(["rows"]))).observe(this.scroller);
    enablePanZoom(this.scroller, this.axis, this);
  }

  /** @param {MouseEvent} event */
  #onClick(event) {
    if (!(event.target instanceof Element)) return;
    const id = event.target.closest(".row")?.getAttribute("data-id");
    const row = this.list.rows.find((each) => each.id === id);
    if (!row) return;
    if (event.target.closest("[data-action=center]")) this.centerOn(row);
    else this.open(row.id);
  }

  // Being shown.

  /**
   * @param {string} _parameter
   * @param {string} query a filter, which takes the place of the one before
   */
  show(_parameter, query) {
    const isReturning = !this.#isShown;
    this.#isShown = true;
    const filter = readFilter(query);
    if (filter) this.tools.set(filter);
    this.#writeAddress();
    this.update(new Set(["rows", "sessions"]));
    if (isReturning) this.scroller.scrollTop = this.#scrolledTo;
  }

  /** Store the view in the address, for bookmarks and links. Typing adds no history entries. */
  #writeAddress() {
    if (!this.#isShown) return;
    const query = writeFilter(this.tools.filter);
    const hash = query ? `#waterfall?${query}` : "#waterfall";
    if (location.hash !== hash && (query || location.hash)) history.replaceState(null, "", hash);
  }

  /** An element that is removed from the page loses its scroll position. */
  hide() {
    this.#isShown = false;
    this.#scrolledTo = this.scroller.scrollTop;
  }

  /** @param {string} id */
  showSession(id) {
    this.tools.set({ ...EMPTY_FILTER, session: id });
  }

  /** @param {Topics} topics */
  update(topics) {
    if (!topics.has("rows") && !topics.has("sessions") && !topics.has("feed")) return;
    if (topics.has("rows") || topics.has("sessions")) this.tools.updateOptions();
    const ordered = this.#paused ? this.#paused.ordered : this.store.rows.ordered;
    this.#filtered = filterRequests(ordered, this.tools.filter);
    this.#fitOnce();
    this.list.setRows(this.#filtered.rows, { showsSession: !this.tools.filter.session && this.#filtered.sessions > 1 });
    this.tools.update({
      shown: this.#filtered.rows.length,
      total: ordered.length,
      isPaused: Boolean(this.#paused),
      fresh: this.#paused ? this.#countNew(this.#paused) : 0,
      isFollowing: this.#scale.isFollowing,
    });
    this.#showEmptyState(ordered.length);
    this.detail.update(topics);
    this.render();
    this.#animate();
  }

  /** @param {Frozen} frozen */
  #countNew(frozen) {
    return filterRequests(this.store.rows.ordered, this.tools.filter).rows.filter((row) => !frozen.ids.has(row.id))
      .length;
  }

  /** The first frame shows the most recent requests, regardless of their duration. */
  #fitOnce() {
    if (this.#hasFitted || this.#filtered.rows.length === 0) return;
    this.#hasFitted = true;
    const recent = this.#filtered.rows.slice(0, RECENT_ROWS);
    const oldest = recent.reduce((least, row) => Math.min(least, row.startedAt), Infinity);
    this.#scale.span = Math.min(600_000, Math.max(10_000, (this.#newest() - oldest) * 1.1));
  }

  #newest() {
    return this.#filtered.pending > 0 ? Math.max(this.#now(), this.#filtered.newest) : this.#filtered.newest;
  }

  #now() {
    return this.#paused ? this.#paused.at : serverNow();
  }

  render() {
    if (!this.#isShown) return;
    this.#lastFrame = performance.now();
    this.#scale.follow(this.#filtered.rows.length > 0 ? this.#newest() : this.#now());
    this.axis.render(this.#scale);
    this.list.render(this.#scale, this.axis.width, this.#now());
  }

  /** Bars of running requests grow. If nothing is running, nothing is redrawn. */
  #animate() {
    if (this.#isAnimating) return;
    this.#isAnimating = true;
    const frame = () => {
      this.#isAnimating = this.#isShown && !this.#paused && this.#filtered.pending > 0;
      if (!this.#isAnimating) return;
      const pause = reducedMotion.matches ? REDUCED_FRAME_MS : FRAME_MS;
      const since = performance.now() - this.#lastFrame;
      if (since >= pause) this.render();
      setTimeout(() => requestAnimationFrame(frame), since >= pause ? pause : pause - since);
    };
    requestAnimationFrame(frame);
  }

  /** @param {number} total */
  #showEmptyState(total) {
    const isEmpty = this.#filtered.rows.length === 0 && this.store.isReady;
    this.empty.hidden = !isEmpty;
    if (!isEmpty) return;
    const kind = total > 0 && isFiltering(this.tools.filter) ? "filtered" : "none";
    if (this.empty.dataset.kind === kind) return;
    this.empty.dataset.kind = kind;
    const clear = h(
      "button",
      { type: "button", class: "button", onclick: () => this.tools.set(EMPTY_FILTER) },
      "Clear filters",
    );
    this.empty.replaceChildren(
      kind === "filtered"
        ? emptyState("No request fits these filters.", clear)
        : emptyState("No requests yet.", ...connectHint()),
    );
  }

  // User actions.

  /**
   * @param {number} factor
   * @param {number} [part]
   */
  zoom(factor, part) {
    this.#scale.zoom(factor, part);
    this.render();
  }

  /** @param {number} pixels */
  panBy(pixels) {
    this.#scale.pan((pixels / this.axis.width) * this.#scale.span);
    this.update(new Set(["feed"]));
  }

  fit() {
    if (this.#filtered.rows.length === 0) return;
    this.#scale.fit(this.#filtered.oldest, this.#newest());
    this.render();
  }

  /** @param {Wire.RequestRow} row */
  centerOn(row) {
    this.#scale.center(...extent(row, this.#now()));
    this.update(new Set(["feed"]));
  }

  centerOnActive() {
    const row = this.list.rows.find((each) => each.id === this.list.activeId);
    if (row) this.centerOn(row);
  }

  toggleFollow() {
    if (this.#paused) this.togglePause();
    else this.#scale.isFollowing = !this.#scale.isFollowing;
    this.update(new Set(["feed"]));
  }

  togglePause() {
    if (this.#paused) this.#paused = null;
    else {
      const ordered = this.store.rows.ordered.slice();
      this.#paused = { at: serverNow(), ordered, ids: new Set(ordered.map((row) => row.id)) };
    }
    this.update(new Set(["rows"]));
  }

  /**
   * @param {string} id
   * @param {{ byKeyboard?: boolean }} [options]
   */
  open(id, { byKeyboard = false } = {}) {
    const row = this.list.rows.find((each) => each.id === id) ?? this.store.rows.get(id);
    if (!row) return;
    this.list.activeId = this.list.selectedId = id;
    this.element.classList.add("with-detail");
    this.detail.open(row, { takesFocus: byKeyboard && matchMedia("(max-width: 760px)").matches });
    this.render();
  }

  close() {
    return this.detail.close();
  }

  tick() {
    if (!this.#paused) this.detail.tick();
  }

  #onDetailClosed() {
    this.element.classList.remove("with-detail");
    this.list.selectedId = null;
    this.render();
    this.list.focusActive();
  }
}
