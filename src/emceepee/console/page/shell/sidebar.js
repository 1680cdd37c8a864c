// Navigation, the state of the feed, theme, and logout.

import { formatCoarse } from "../lib/format.js";
import { asArray } from "../lib/safe-json.js";
import { retryNow } from "../net/backoff.js";
import { iconButton } from "../ui/controls.js";
import { byId, h, setAttribute, setText } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { themeButton } from "./theme-button.js";

/**
 * @import { Store } from "../state/store.js"
 */

/** @typedef {typeof VIEWS[number][0]} ViewName */

export const VIEWS = /** @type {const} */ ([
  ["waterfall", "Waterfall"],
  ["overview", "Overview"],
  ["questions", "Questions"],
  ["servers", "Servers"],
  ["sessions", "Sessions"],
  ["tasks", "Tasks"],
  ["timers", "Timers"],
  ["events", "Events"],
  ["logs", "Logs"],
]);

export class Sidebar {
  /** @type {Map<string, { link: HTMLAnchorElement, badge: HTMLElement }>} */
  #links = new Map();

  /**
   * @param {Store} store
   * @param {{ onHelp: () => void }} listeners
   */
  constructor(store, { onHelp }) {
    this.store = store;
    const items = VIEWS.map(([name, title]) => {
      const badge = h("span", { class: "nav-count", "aria-hidden": "true" });
      const link = h("a", { href: `#${name}` }, icon(name), h("span", { class: "nav-title" }, title), badge);
      this.#links.set(name, { link, badge });
      return h("li", null, link);
    });
    byId("nav").append(h("ul", null, items));
    this.feedText = h("span", { class: "feed-text" });
    this.feedButton = h(
      "button",
      { type: "button", class: "feed-state", onclick: retryNow },
      h("i", { class: "dot", "aria-hidden": "true" }),
      this.feedText,
    );
    const logout = h(
      "form",
      { method: "post", action: "/console/logout" },
      h(
        "button",
        { type: "submit", class: "button quiet icon-only", "aria-label": "Log out", title: "Log out" },
        icon("logout"),
      ),
    );
    byId("sidebar-footer").append(
      this.feedButton,
      h(
        "div",
        { class: "sidebar-buttons" },
        themeButton(),
        iconButton("help", "Keyboard shortcuts (?)", { onclick: onHelp }),
        logout,
      ),
    );
  }

  /** @param {string} current */
  select(current) {
    for (const [name, { link }] of this.#links) setAttribute(link, "aria-current", name === current ? "page" : null);
    this.#links.get(current)?.link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  update() {
    const sessions = [...this.store.sessions.values()];
    const questions = this.store.questions().length;
    const working = sessions
      .flatMap((session) => asArray(session.tasks))
      .filter((task) => task.status === "working").length;
    const failing = new Set(
      sessions
        .flatMap((session) => asArray(session.servers))
        .filter((server) => server.status === "error")
        .map((server) => server.name),
    ).size;
    this.#showCount("questions", questions, "attention", `${questions} open`);
    this.#showCount("tasks", working, "", `${working} working`);
    this.#showCount("servers", failing, "bad", `${failing} in error`);
    this.#showFeedState();
  }

  /**
   * @param {ViewName} name
   * @param {number} number
   * @param {string} tone
   * @param {string} label
   */
  #showCount(name, number, tone, label) {
    const badge = this.#links.get(name)?.badge;
    if (!badge) return;
    setText(badge, number > 0 ? String(number) : "");
    setAttribute(badge, "title", number > 0 ? label : null);
    badge.className = `nav-count ${tone}`;
  }

  #showFeedState() {
    const { status, retryAt } = this.store.feed;
    document.body.dataset.feed = status;
    const wait = retryAt ? retryAt - Date.now() : 0;
    const lost = wait > 900 ? `Offline, retry in ${formatCoarse(wait)}` : "Reconnecting…";
    setText(this.feedText, { live: "Live", connecting: "Connecting…", lost }[status]);
    setAttribute(
      this.feedButton,
      "title",
      status === "live" ? `emceepee ${this.store.hello?.version ?? ""}` : "Try again now",
    );
  }
}
