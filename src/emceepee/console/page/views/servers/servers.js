// The servers: one card each, with its connection in every session, and tools to try.

import { truncate } from "../../lib/display-text.js";
import { asArray } from "../../lib/safe-json.js";
import { button, emptyState, viewHeader } from "../../ui/controls.js";
import { bdi, h, reconcile, replaceContent } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { CallList } from "./call-list.js";
import { ServerCard } from "./server-card.js";
import { ServerForm } from "./server-form.js";

/**
 * @import { Calls } from "../../calls/calls.js"
 * @import { ServerAdmin } from "../../calls/server-admin.js"
 * @import { ToolCatalog } from "../../calls/tool-catalog.js"
 * @import { Store, Topics } from "../../state/store.js"
 * @import { ServerGroup } from "./server-card.js"
 */

export class ServersView {
  /** @type {string | null} */
  #name = null;

  /**
   * @param {Store} store
   * @param {{ calls: Calls, catalog: ToolCatalog, admin: ServerAdmin }} parts
   */
  constructor(store, { calls, catalog, admin }) {
    this.store = store;
    this.parts = { catalog, admin };
    this.add = button("Add server", { class: "button primary", testid: "add-server", onclick: () => this.#openForm() });
    this.formPlace = h("div", { class: "card new-server", hidden: true });
    this.back = h("a", { class: "back", href: "#servers", hidden: true }, icon("back", 16), "All servers");
    this.cards = h("div", { class: "servers" });
    this.empty = emptyState(
      "No servers yet.",
      h(
        "p",
        null,
        "Add one here, list servers in emceepee’s configuration, or let a client call ",
        h("code", null, "add_server"),
        ".",
      ),
    );
    this.missingName = h("h2");
    this.missing = h(
      "div",
      { class: "empty-state", testid: "server-not-found", hidden: true },
      this.missingName,
      h("p", null, "Its name may be misspelled, or it was removed."),
    );
    this.callList = new CallList(store, calls);
    const head = viewHeader("Servers", this.back, this.add);
    this.element = h(
      "section",
      { class: "view page servers-view", "aria-label": "Servers" },
      head,
      this.formPlace,
      this.empty,
      this.missing,
      h("div", { class: "servers-layout" }, this.cards, this.callList.element),
    );
  }

  /** @param {string} name */
  show(name) {
    this.#name = name || null;
    this.element.classList.toggle("single-server", Boolean(this.#name));
    this.back.hidden = !this.#name;
    this.add.hidden = Boolean(this.#name) || !this.formPlace.hidden;
    this.callList.showOnly(this.#name);
    this.update(new Set(["sessions", "logs"]));
  }

  /** @param {Topics} topics */
  update(topics) {
    if (topics.has("sessions") || topics.has("logs")) this.#render();
    this.callList.update();
  }

  #openForm() {
    const form = new ServerForm(this.parts.admin, { onDone: () => this.#closeForm() });
    this.formPlace.replaceChildren(h("h2", null, "Add a server"), form.element);
    this.formPlace.hidden = false;
    this.add.hidden = true;
    form.focus();
  }

  #closeForm() {
    this.formPlace.replaceChildren();
    this.formPlace.hidden = true;
    this.add.hidden = false;
    this.add.focus();
  }

  #render() {
    const groups = groupByServer(this.store);
    const shown = this.#name ? groups.filter((group) => group.name === this.#name) : groups;
    this.empty.hidden = shown.length > 0 || !this.store.isReady || Boolean(this.#name);
    // Without a session, the servers are not known yet.
    this.missing.hidden = !this.#name || shown.length > 0 || !this.store.isReady || this.store.sessions.size === 0;
    if (!this.missing.hidden && this.#name) {
      replaceContent(this.missingName, "No server is called ", bdi(truncate(this.#name, 100)), ".");
    }
    if (this.store.isReady && this.store.sessions.size === 0) this.parts.catalog.ensureSession();
    reconcile(
      this.cards,
      shown,
      (group) => group.name,
      (group) => new ServerCard(this.store, group.name, this.parts),
    );
    for (const card of this.cards.children) card.classList.toggle("expanded", Boolean(this.#name));
  }

  tick() {
    this.#render();
    this.callList.tick();
  }
}

/**
 * @param {string} name
 * @returns {ServerGroup}
 */
const emptyGroup = (name) => ({
  name,
  connections: [],
  session: null,
  url: "",
  isConfigured: false,
  isDisabled: false,
});

/**
 * Each server's name with its connection in every session.
 * @param {Store} store
 */
function groupByServer(store) {
  /** @type {Map<string, ServerGroup>} */
  const groups = new Map();
  const groupOf = (/** @type {string} */ name, /** @type {string} */ session, url = "") => {
    const group = groups.get(name) ?? { ...emptyGroup(name), session, url };
    groups.set(name, group);
    return group;
  };
  for (const session of store.sessions.values()) {
    for (const server of asArray(session.servers)) {
      const group = groupOf(server.name, session.id, server.url);
      group.connections.push({ session, server });
      if (server.isConfigured) group.isConfigured = true;
    }
    for (const { name, url, isConfigured } of asArray(session.disabledServers)) {
      const group = groupOf(name, session.id, url);
      if (group.connections.length > 0) continue;
      group.isDisabled = true;
      group.isConfigured = Boolean(isConfigured);
    }
  }
  return [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
