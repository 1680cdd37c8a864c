// The servers: one card each, with the connection of every session, and tools to try.

import { asArray } from "../../lib/safe-json.js";
import { emptyState, viewHeader } from "../../ui/controls.js";
import { h, reconcile } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { CallList } from "./call-list.js";
import { ServerCard } from "./server-card.js";

/**
 * @import { Calls } from "../../calls/calls.js"
 * @import { ToolCatalog } from "../../calls/tool-catalog.js"
 * @import { Store, Topics } from "../../state/store.js"
 * @import { ServerGroup } from "./server-card.js"
 */

export class ServersView {
  /** @type {string | null} */
  #name = null;

  /**
   * @param {Store} store
   * @param {{ calls: Calls, catalog: ToolCatalog }} parts
   */
  constructor(store, { calls, catalog }) {
    this.store = store;
    this.catalog = catalog;
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
    const head = viewHeader("Servers", this.back);
    this.element = h(
      "section",
      { class: "view page servers-view", "aria-label": "Servers" },
      head,
      this.empty,
      h("div", { class: "servers-layout" }, this.cards, this.callList.element),
    );
  }

  /** @param {string} name */
  show(name) {
    this.#name = name || null;
    this.element.classList.toggle("single-server", Boolean(this.#name));
    this.back.hidden = !this.#name;
    this.callList.showOnly(this.#name);
    this.update(new Set(["sessions", "logs"]));
  }

  /** @param {Topics} topics */
  update(topics) {
    if (topics.has("sessions") || topics.has("logs")) this.#render();
    this.callList.update();
  }

  #render() {
    const groups = groupByServer(this.store);
    const shown = this.#name ? groups.filter((group) => group.name === this.#name) : groups;
    if (this.#name && shown.length === 0 && this.store.isReady) shown.push({ name: this.#name, connections: [] });
    this.empty.hidden = shown.length > 0 || !this.store.isReady;
    if (this.store.isReady && this.store.sessions.size === 0) this.catalog.ensureSession();
    reconcile(
      this.cards,
      shown,
      (group) => group.name,
      (group) => new ServerCard(this.store, group.name, this.catalog),
    );
    for (const card of this.cards.children) card.classList.toggle("expanded", Boolean(this.#name));
  }

  tick() {
    this.#render();
    this.callList.tick();
  }
}

/**
 * Each server's name with its connection in every session.
 * @param {Store} store
 */
function groupByServer(store) {
  /** @type {Map<string, ServerGroup>} */
  const groups = new Map();
  for (const session of store.sessions.values()) {
    for (const server of asArray(session.servers)) {
      const group = groups.get(server.name) ?? { name: server.name, connections: [] };
      group.connections.push({ session, server });
      groups.set(server.name, group);
    }
  }
  return [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
