// The bar above the waterfall: filters, pause, follow, and zoom.

import { pluralize } from "../../lib/format.js";
import { asArray } from "../../lib/safe-json.js";
import { STATUS_LABELS, TYPE_LABELS } from "../../state/request-phases.js";
import { sessionName } from "../../state/session-names.js";
import { Select, iconButton, searchBox } from "../../ui/controls.js";
import { h, setAttribute, setText } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { EMPTY_FILTER } from "./request-filter.js";

/**
 * @import { Store } from "../../state/store.js"
 * @import { Option } from "../../ui/controls.js"
 * @import { Filter } from "./request-filter.js"
 */
/**
 * @typedef {object} ToolbarListeners
 * @property {() => void} onFilter
 * @property {() => void} onPause
 * @property {() => void} onFollow
 * @property {(factor: number) => void} onZoom
 * @property {() => void} onFit
 */

/** @param {{ [value: string]: string }} names */
const pairs = (names) => Object.entries(names);

export class WaterfallToolbar {
  /** @type {Filter} */
  filter = { ...EMPTY_FILTER };

  /**
   * @param {Store} store
   * @param {ToolbarListeners} listeners
   */
  constructor(store, { onFilter, onPause, onFollow, onZoom, onFit }) {
    this.store = store;
    this.onFilter = onFilter;
    const set = (/** @type {keyof Filter} */ key) => (/** @type {string} */ value) => this.set({ [key]: value });
    this.search = searchBox("Search", "filter-search", set("search"));
    this.search.input.title = "Words in names, servers, errors and arguments (/)";
    this.selects = {
      session: new Select("Session", { testid: "filter-session", onChange: set("session") }),
      server: new Select("Server", { testid: "filter-server", onChange: set("server") }),
      status: new Select("Status", {
        testid: "filter-status",
        onChange: set("status"),
        options: [["", "Any status"], ...pairs(STATUS_LABELS), ["task", "Became a task"]],
      }),
      type: new Select("Type", {
        testid: "filter-type",
        onChange: set("type"),
        options: [["", "All requests"], ["backends", "Only servers’ work"], ...pairs(TYPE_LABELS)],
      }),
    };
    this.count = h("span", { class: "row-count", testid: "row-count", "aria-live": "off" });
    this.pauseText = h("span", null, "Pause");
    this.pause = h(
      "button",
      {
        type: "button",
        class: "button toggle",
        testid: "pause",
        "aria-pressed": "false",
        title: "Freeze the view (p)",
        onclick: onPause,
      },
      icon("pause", 16),
      this.pauseText,
    );
    this.follow = h(
      "button",
      {
        type: "button",
        class: "button toggle",
        testid: "follow",
        "aria-pressed": "true",
        title: "Keep the newest moment in view (f)",
        onclick: onFollow,
      },
      icon("live", 16),
      "Live",
    );
    const zoom = h(
      "div",
      { class: "button-group", role: "group", "aria-label": "Zoom" },
      iconButton("minus", "Zoom out (-)", { testid: "zoom-out", onclick: () => onZoom(1.6) }),
      iconButton("plus", "Zoom in (+)", { testid: "zoom-in", onclick: () => onZoom(1 / 1.6) }),
      iconButton("fit", "Fit all (0)", { testid: "zoom-fit", onclick: onFit }),
    );
    const filters = h(
      "div",
      { class: "filters" },
      this.search.element,
      Object.values(this.selects).map((select) => select.element),
    );
    this.element = h(
      "div",
      { class: "toolbar" },
      filters,
      h("div", { class: "toolbar-end" }, this.pause, this.follow, zoom),
    );
  }

  /** @param {Partial<Filter>} change */
  set(change) {
    Object.assign(this.filter, change);
    this.updateOptions();
    if (this.search.input.value !== this.filter.search) this.search.input.value = this.filter.search;
    this.onFilter();
  }

  #showFilter() {
    const { session, server, status, type } = this.selects;
    session.value = this.filter.session;
    server.value = this.filter.server;
    status.value = this.filter.status;
    type.value = this.filter.type;
  }

  updateOptions() {
    const sessions = new Set(this.store.sessions.keys());
    /** @type {Set<string>} */
    const servers = new Set();
    for (const session of this.store.sessions.values())
      for (const server of asArray(session.servers)) servers.add(server.name);
    for (const row of this.store.rows.ordered) {
      sessions.add(row.session);
      if (row.server) servers.add(row.server);
    }
    // The session or server in an address may be gone, or not yet in the feed.
    if (this.filter.session) sessions.add(this.filter.session);
    if (this.filter.server) servers.add(this.filter.server);
    this.selects.session.setOptions([
      ["", "All sessions"],
      ...[...sessions].map((id) => /** @type {Option} */ ([id, sessionName(this.store, id)])),
    ]);
    this.selects.server.setOptions([
      ["", "All servers"],
      ...[...servers].sort().map((name) => /** @type {Option} */ ([name, name])),
    ]);
    this.#showFilter();
  }

  /**
   * @param {{ shown: number, total: number, isPaused: boolean, fresh: number, isFollowing: boolean }} state
   */
  update({ shown, total, isPaused, fresh, isFollowing }) {
    setText(
      this.count,
      shown === total ? pluralize(total, "request") : `${shown.toLocaleString("en")} of ${pluralize(total, "request")}`,
    );
    setAttribute(this.pause, "aria-pressed", String(isPaused));
    const paused = fresh > 0 ? `Paused · ${fresh.toLocaleString("en")} new` : "Paused";
    setText(this.pauseText, isPaused ? paused : "Pause");
    setAttribute(this.follow, "aria-pressed", String(isFollowing && !isPaused));
  }
}
