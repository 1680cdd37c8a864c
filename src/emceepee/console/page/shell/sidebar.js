// Navigation, the state of the line, theme and log-out.

import { h, setAttribute, setText } from "../ui/dom.js";
import { iconButton } from "../ui/controls.js";
import { roughly } from "../text/format.js";
import { icon } from "../ui/icons.js";
import { list } from "../state/store.js";
import { retryNow } from "../net/backoff.js";
import { themeButton } from "./theme-button.js";

export const VIEWS = [
  ["waterfall", "Waterfall"],
  ["questions", "Questions"],
  ["servers", "Servers"],
  ["sessions", "Sessions"],
  ["tasks", "Tasks"],
  ["timers", "Timers"],
  ["events", "Events"],
  ["logs", "Logs"],
];

export class Sidebar {
  #links = new Map();

  constructor(store, { onHelp }) {
    this.store = store;
    const items = VIEWS.map(([name, title]) => {
      const badge = h("span", { class: "nav-count", "aria-hidden": "true" });
      const link = h("a", { href: `#${name}` }, icon(name), h("span", { class: "nav-title" }, title), badge);
      this.#links.set(name, { link, badge });
      return h("li", null, link);
    });
    document.getElementById("nav").append(h("ul", null, items));
    this.state = h("span", { class: "feed-text" });
    this.line = h(
      "button",
      { type: "button", class: "feed-state", onclick: retryNow },
      h("i", { class: "dot", "aria-hidden": "true" }),
      this.state,
    );
    const logout = h(
      "form",
      { method: "post", action: "/console/logout" },
      h(
        "button",
        { type: "submit", class: "button quiet square", "aria-label": "Log out", title: "Log out" },
        icon("logout"),
      ),
    );
    document
      .getElementById("side-foot")
      .append(
        this.line,
        h(
          "div",
          { class: "side-buttons" },
          themeButton(),
          iconButton("help", "Keyboard shortcuts (?)", { onclick: onHelp }),
          logout,
        ),
      );
  }

  select(current) {
    for (const [name, { link }] of this.#links) setAttribute(link, "aria-current", name === current ? "page" : null);
    this.#links.get(current)?.link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  update() {
    const sessions = [...this.store.sessions.values()];
    const questions = this.store.questions().length;
    const working = sessions
      .flatMap((session) => list(session.tasks))
      .filter((task) => task.status === "working").length;
    const troubled = new Set(
      sessions
        .flatMap((session) => list(session.servers))
        .filter((server) => server.status === "error")
        .map((server) => server.name),
    ).size;
    this.#count("questions", questions, "attention", `${questions} open`);
    this.#count("tasks", working, "", `${working} working`);
    this.#count("servers", troubled, "bad", `${troubled} in error`);
    this.#showLine();
  }

  #count(name, number, tone, words) {
    const { badge } = this.#links.get(name);
    setText(badge, number > 0 ? String(number) : "");
    setAttribute(badge, "title", number > 0 ? words : null);
    badge.className = `nav-count ${tone}`;
  }

  #showLine() {
    const { status, retryAt } = this.store.feed;
    document.body.dataset.feed = status;
    const wait = retryAt ? retryAt - Date.now() : 0;
    const lost = wait > 900 ? `Offline, retry in ${roughly(wait)}` : "Reconnecting…";
    setText(this.state, { live: "Live", connecting: "Connecting…", lost }[status]);
    setAttribute(
      this.line,
      "title",
      status === "live" ? `emceepee ${this.store.hello?.version ?? ""}` : "Try again now",
    );
  }
}
