// Items that wait for a person: questions, and servers that need a login.

import { pluralize } from "../../lib/format.js";
import { asArray } from "../../lib/safe-json.js";
import { loginLink } from "../../lib/web-address.js";
import { sessionName } from "../../state/session-names.js";
import { bdi, h, nameLabel, reconcile, setAttribute, setText } from "../../ui/dom.js";

/**
 * @import { Store } from "../../state/store.js"
 * @typedef {{ key: string, session: string, server: string, address: ReturnType<typeof loginLink> }} Login
 */

export class WaitingList {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.questions = h("a", { class: "button primary small", href: "#questions" }, "");
    this.logins = h("ul", { class: "short-list" });
    this.element = h(
      "section",
      { class: "card waiting-card", testid: "waiting", "aria-label": "Waits for you", hidden: true },
      h("header", { class: "card-head" }, h("h2", null, "Waits for you"), this.questions),
      this.logins,
    );
  }

  update() {
    const questions = this.store.questions().length;
    const logins = loginsOf(this.store);
    this.element.hidden = questions === 0 && logins.length === 0;
    this.questions.hidden = questions === 0;
    setText(this.questions, `Answer ${pluralize(questions, "question")}`);
    reconcile(
      this.logins,
      logins,
      ({ key }) => key,
      (login) => this.#row(login),
    );
  }

  /**
   * @param {Login} made
   * @returns {import("../../ui/dom.js").Part}
   */
  #row(made) {
    const who = bdi("", { class: "muted short-about" });
    const link = h("a", { class: "button small", target: "_blank", rel: "noopener noreferrer" }, "");
    const element = h(
      "li",
      { class: "waiting-login" },
      h("a", { class: "short-name", href: `#servers/${encodeURIComponent(made.server)}` }, nameLabel(made.server)),
      who,
      link,
    );
    const update = (/** @type {Login} */ { session, address }) => {
      setText(who, `wants a login, for ${sessionName(this.store, session)}`);
      link.hidden = !address;
      setAttribute(link, "href", address?.href);
      setText(link, address?.label ?? "");
    };
    return { element, update };
  }
}

/**
 * @param {Store} store
 * @returns {Login[]}
 */
function loginsOf(store) {
  return [...store.sessions.values()].flatMap((session) =>
    asArray(session.servers)
      .filter((server) => server.status === "authorizing")
      .map((server) => ({
        key: `${session.id} ${server.name}`,
        session: session.id,
        server: server.name,
        address: loginLink(server),
      })),
  );
}
