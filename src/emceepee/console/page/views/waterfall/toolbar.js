// The bar above the waterfall: filters, pause, follow and zoom.

import { Choice, iconButton, searchBox } from "../../ui/controls.js";
import { h, setAttribute, setText } from "../../ui/dom.js";
import { count } from "../../text/format.js";
import { icon } from "../../ui/icons.js";
import { sessionName } from "../../state/session-names.js";
import { STATUSES, TYPES } from "../../state/request-phases.js";
import { NO_FILTER } from "./request-filter.js";
import { list } from "../../state/store.js";

const pairs = (names) => Object.entries(names);

export class WaterfallTools {
  filter = { ...NO_FILTER };

  constructor(store, { onFilter, onPause, onFollow, onZoom, onFit }) {
    this.store = store;
    this.onFilter = onFilter;
    const set = (key) => (value) => this.set({ [key]: value });
    this.search = searchBox("Search", "filter-search", set("search"));
    this.choices = {
      session: new Choice("Session", { testid: "filter-session", onChange: set("session") }),
      server: new Choice("Server", { testid: "filter-server", onChange: set("server") }),
      status: new Choice("Status", {
        testid: "filter-status",
        onChange: set("status"),
        options: [["", "Any status"], ...pairs(STATUSES), ["task", "Became a task"]],
      }),
      type: new Choice("Type", {
        testid: "filter-type",
        onChange: set("type"),
        options: [["", "All requests"], ["backends", "Only servers’ work"], ...pairs(TYPES)],
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
      { class: "group", role: "group", "aria-label": "Zoom" },
      iconButton("minus", "Zoom out (-)", { testid: "zoom-out", onclick: () => onZoom(1.6) }),
      iconButton("plus", "Zoom in (+)", { testid: "zoom-in", onclick: () => onZoom(1 / 1.6) }),
      iconButton("fit", "Fit all (0)", { testid: "zoom-fit", onclick: onFit }),
    );
    const filters = h(
      "div",
      { class: "filters" },
      this.search.element,
      Object.values(this.choices).map((choice) => choice.element),
    );
    this.element = h(
      "div",
      { class: "toolbar" },
      filters,
      h("div", { class: "toolbar-end" }, this.pause, this.follow, zoom),
    );
  }

  set(change) {
    Object.assign(this.filter, change);
    for (const [key, choice] of Object.entries(this.choices)) choice.value = this.filter[key];
    if (this.search.input.value !== this.filter.search) this.search.input.value = this.filter.search;
    this.onFilter();
  }

  updateOptions() {
    const sessions = new Set(this.store.sessions.keys());
    const servers = new Set();
    for (const session of this.store.sessions.values())
      for (const server of list(session.servers)) servers.add(server.name);
    for (const row of this.store.rows.ordered) {
      sessions.add(row.session);
      if (row.server) servers.add(row.server);
    }
    this.choices.session.setOptions([
      ["", "All sessions"],
      ...[...sessions].map((id) => [id, sessionName(this.store, id)]),
    ]);
    this.choices.server.setOptions([["", "All servers"], ...[...servers].sort().map((name) => [name, name])]);
  }

  update({ shown, total, isPaused, fresh, isFollowing }) {
    setText(
      this.count,
      shown === total ? count(total, "request") : `${shown.toLocaleString("en")} of ${count(total, "request")}`,
    );
    setAttribute(this.pause, "aria-pressed", String(isPaused));
    const paused = fresh > 0 ? `Paused · ${fresh.toLocaleString("en")} new` : "Paused";
    setText(this.pauseText, isPaused ? paused : "Pause");
    setAttribute(this.follow, "aria-pressed", String(isFollowing && !isPaused));
  }
}
