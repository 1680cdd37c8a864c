// The servers: one card each, with the connection of every session, and tools to try.

import { CallList } from "./call-list.js";
import { emptyState, viewHead } from "../../ui/controls.js";
import { h, reconcile } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { ServerCard } from "./server-card.js";
import { list } from "../../state/store.js";

export class Servers {
  #name = null;

  constructor(store, { calls, toolbox }) {
    this.store = store;
    this.toolbox = toolbox;
    this.back = h("a", { class: "back", href: "#servers", hidden: true }, icon("back", 16), "All servers");
    this.cards = h("div", { class: "servers" });
    this.empty = emptyState(
      "No servers yet.",
      h(
        "p",
        null,
        "List servers in emceepee’s configuration, or let a client call ",
        h("code", null, "add_server"),
        ".",
      ),
    );
    this.callList = new CallList(store, calls);
    const head = viewHead("Servers", this.back);
    this.element = h(
      "section",
      { class: "view page servers-view", "aria-label": "Servers" },
      head,
      this.empty,
      h("div", { class: "servers-layout" }, this.cards, this.callList.element),
    );
  }

  show(name) {
    this.#name = name || null;
    this.element.classList.toggle("single", Boolean(this.#name));
    this.back.hidden = !this.#name;
    this.callList.showOnly(this.#name);
    this.update(new Set(["sessions", "logs"]));
  }

  update(topics) {
    if (topics.has("sessions") || topics.has("logs")) this.#render();
    this.callList.update();
  }

  #render() {
    const groups = grouped(this.store);
    const shown = this.#name ? groups.filter((group) => group.name === this.#name) : groups;
    if (this.#name && shown.length === 0 && this.store.isReady) shown.push({ name: this.#name, links: [] });
    this.empty.hidden = shown.length > 0 || !this.store.isReady;
    if (this.store.isReady && this.store.sessions.size === 0) this.toolbox.needSession();
    reconcile(
      this.cards,
      shown,
      (group) => group.name,
      (group) => new ServerCard(this.store, group.name, this.toolbox),
    );
    for (const card of this.cards.children) card.classList.toggle("whole", Boolean(this.#name));
  }

  tick() {
    this.#render();
    this.callList.tick();
  }
}

/** Each server's name with its connection in every session. */
function grouped(store) {
  const groups = new Map();
  for (const session of store.sessions.values()) {
    for (const server of list(session.servers)) {
      if (!groups.has(server.name)) groups.set(server.name, { name: server.name, links: [] });
      groups.get(server.name).links.push({ session, server });
    }
  }
  return [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
