// The waterfall: what was asked, when, and how long each part took.

import { AxisView } from "./time-axis.js";
import { TimeWindow } from "./time-scale.js";
import { now as serverNow } from "../../state/server-clock.js";
import { emptyState } from "../../ui/controls.js";
import { DetailPanel } from "./detail-panel.js";
import { h } from "../../ui/dom.js";
import { connectHint } from "../../ui/connect-hint.js";
import { legend } from "./legend.js";
import { extent } from "../../state/request-phases.js";
import { NO_FILTER, filtered, isFiltering } from "./request-filter.js";
import { RowList } from "./virtual-rows.js";
import { listenToTimeline } from "./pan-zoom.js";
import { WaterfallTools } from "./toolbar.js";

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const FRAME_MS = 100; // ten pictures a second are smooth enough for bars that grow
const CALM_FRAME_MS = 1000;
const RECENT_ROWS = 25;

export class Waterfall {
  #found = filtered([], NO_FILTER);
  #window = new TimeWindow();
  #paused = null;
  #isShown = false;
  #lastFrame = 0;
  #isAnimating = false;
  #hasFitted = false;
  #scrolledTo = 0;

  constructor(store) {
    this.store = store;
    this.tools = new WaterfallTools(store, {
      onFilter: () => this.update(new Set(["rows"])),
      onPause: () => this.togglePause(),
      onFollow: () => this.toggleFollow(),
      onZoom: (factor) => this.zoom(factor),
      onFit: () => this.fit(),
    });
    this.axis = new AxisView();
    this.scroller = h("div", { class: "scroller", role: "grid", "aria-label": "Requests, newest first" });
    this.list = new RowList(store, { scroller: this.scroller, onOpen: (id, how) => this.open(id, how) });
    this.list.onMove = (id) => {
      if (this.detail.isOpen) this.open(id);
      else this.render();
    };
    this.scroller.append(this.axis.head, this.axis.lines, this.list.element);
    this.empty = h("div", { class: "waterfall-empty", hidden: true });
    this.detail = new DetailPanel(store, { onClose: () => this.#closed() });
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
    listenToTimeline(this.scroller, this.axis, this);
  }

  #onClick(event) {
    const element = event.target.closest(".row");
    const row = element && this.list.rows.find((each) => each.id === element.dataset.id);
    if (!row) return;
    if (event.target.closest("[data-action=center]")) this.centerOn(row);
    else this.open(row.id);
  }

  // Being shown.

  show() {
    const isReturning = !this.#isShown;
    this.#isShown = true;
    this.update(new Set(["rows", "sessions"]));
    if (isReturning) this.scroller.scrollTop = this.#scrolledTo;
  }

  /** Out of the page, an element forgets how far it was scrolled. */
  hide() {
    this.#isShown = false;
    this.#scrolledTo = this.scroller.scrollTop;
  }

  showSession(id) {
    this.tools.updateOptions();
    this.tools.set({ ...NO_FILTER, session: id });
  }

  update(topics) {
    if (!["rows", "sessions", "feed"].some((topic) => topics.has(topic))) return;
    if (topics.has("rows") || topics.has("sessions")) this.tools.updateOptions();
    const ordered = this.#paused ? this.#paused.ordered : this.store.rows.ordered;
    this.#found = filtered(ordered, this.tools.filter);
    this.#fitOnce();
    this.list.setRows(this.#found.rows, { showsSession: !this.tools.filter.session && this.#found.sessions > 1 });
    this.tools.update({
      shown: this.#found.rows.length,
      total: ordered.length,
      isPaused: Boolean(this.#paused),
      fresh: this.#paused ? this.#freshCount() : 0,
      isFollowing: this.#window.isFollowing,
    });
    this.#showEmptyState(ordered.length);
    this.detail.update(topics);
    this.render();
    this.#animate();
  }

  #freshCount() {
    return filtered(this.store.rows.ordered, this.tools.filter).rows.filter((row) => !this.#paused.ids.has(row.id))
      .length;
  }

  /** The first picture shows the most recent requests, whatever length of time they took. */
  #fitOnce() {
    if (this.#hasFitted || this.#found.rows.length === 0) return;
    this.#hasFitted = true;
    const recent = this.#found.rows.slice(0, RECENT_ROWS);
    const oldest = recent.reduce((least, row) => Math.min(least, row.startedAt), Infinity);
    this.#window.span = Math.min(600_000, Math.max(10_000, (this.#newest() - oldest) * 1.1));
  }

  #newest() {
    return this.#found.pending > 0 ? Math.max(this.#now(), this.#found.newest) : this.#found.newest;
  }

  #now() {
    return this.#paused ? this.#paused.at : serverNow();
  }

  render() {
    if (!this.#isShown) return;
    this.#lastFrame = performance.now();
    this.#window.follow(this.#found.rows.length > 0 ? this.#newest() : this.#now());
    this.axis.render(this.#window);
    this.list.render(this.#window, this.axis.width, this.#now());
  }

  /** Bars of running requests grow; when nothing runs, nothing moves. */
  #animate() {
    if (this.#isAnimating) return;
    this.#isAnimating = true;
    const frame = () => {
      this.#isAnimating = this.#isShown && !this.#paused && this.#found.pending > 0;
      if (!this.#isAnimating) return;
      const pause = reducedMotion.matches ? CALM_FRAME_MS : FRAME_MS;
      const since = performance.now() - this.#lastFrame;
      if (since >= pause) this.render();
      setTimeout(() => requestAnimationFrame(frame), since >= pause ? pause : pause - since);
    };
    requestAnimationFrame(frame);
  }

  #showEmptyState(total) {
    const isEmpty = this.#found.rows.length === 0 && this.store.isReady;
    this.empty.hidden = !isEmpty;
    if (!isEmpty) return;
    const kind = total > 0 && isFiltering(this.tools.filter) ? "filtered" : "none";
    if (this.empty.dataset.kind === kind) return;
    this.empty.dataset.kind = kind;
    const clear = h(
      "button",
      { type: "button", class: "button", onclick: () => this.tools.set(NO_FILTER) },
      "Clear filters",
    );
    this.empty.replaceChildren(
      kind === "filtered"
        ? emptyState("No request fits these filters.", clear)
        : emptyState("No requests yet.", ...connectHint()),
    );
  }

  // What the person does.

  zoom(factor, part) {
    this.#window.zoom(factor, part);
    this.render();
  }

  panBy(pixels) {
    this.#window.pan((pixels / this.axis.width) * this.#window.span);
    this.update(new Set(["feed"]));
  }

  fit() {
    if (this.#found.rows.length === 0) return;
    this.#window.fit(this.#found.oldest, this.#newest());
    this.render();
  }

  centerOn(row) {
    this.#window.center(...extent(row, this.#now()));
    this.update(new Set(["feed"]));
  }

  centerOnActive() {
    const row = this.list.rows.find((each) => each.id === this.list.activeId);
    if (row) this.centerOn(row);
  }

  toggleFollow() {
    if (this.#paused) this.togglePause();
    else this.#window.isFollowing = !this.#window.isFollowing;
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

  #closed() {
    this.element.classList.remove("with-detail");
    this.list.selectedId = null;
    this.render();
    this.list.focusActive();
  }
}
