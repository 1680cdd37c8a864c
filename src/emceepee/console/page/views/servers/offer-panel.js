// One type of a server's offers (tools, resources, or prompts), after the person opened it.

import { messageOf } from "../../lib/errors.js";
import { pluralize } from "../../lib/format.js";
import { searchBox } from "../../ui/controls.js";
import { bdi, h, replaceContent, setAttribute, setText } from "../../ui/dom.js";

/**
 * @import { Children } from "../../ui/dom.js"
 * @typedef {{ element: HTMLElement, text: string }} Offered What shows one of them, and the words by which it is found.
 */

const SEARCH_FROM = 8; // from this number on, there is a search box

export class OfferPanel {
  /**
   * @param {string} server
   * @param {{ what: string, onShow: (panel: OfferPanel) => void, load: () => Promise<Children> }} settings
   */
  constructor(server, { what, onShow, load }) {
    this.server = server;
    this.what = what;
    this.onShow = onShow;
    this.load = load;
    this.button = h(
      "button",
      { type: "button", class: "button", "aria-expanded": "false", onclick: () => this.#show() },
      `Show ${what}s`,
    );
    this.content = h("div", { class: "tools", "aria-live": "polite", "aria-label": `${what}s of ${server}` });
  }

  async #show() {
    const page = `#servers/${encodeURIComponent(this.server)}`;
    if (location.hash !== page) location.hash = page;
    this.onShow(this);
    this.button.disabled = true;
    replaceContent(this.content, h("p", { class: "muted" }, `Asking the server for its ${this.what}s…`));
    try {
      replaceContent(this.content, await this.load());
      setText(this.button, `Show ${this.what}s again`);
    } catch (error) {
      replaceContent(this.content, h("p", { class: "error-text", role: "alert" }, bdi(messageOf(error))));
    }
    this.button.disabled = false;
  }

  /** @param {boolean} isShown */
  setShown(isShown) {
    this.content.hidden = !isShown;
    setAttribute(this.button, "aria-expanded", String(isShown));
  }

  /**
   * A heading with the number of entries, and all entries.
   * @param {Offered[]} offered
   * @param {{ what?: string, errors?: string[] }} [more]
   */
  list(offered, { what = this.what, errors = [] } = {}) {
    const search = searchBox(`Search ${what}s`, `filter-${what}s`, (text) => {
      const wanted = text.toLowerCase();
      for (const each of offered) each.element.hidden = !each.text.toLowerCase().includes(wanted);
    });
    return [
      errors.map((error) => h("p", { class: "error-text" }, bdi(error))),
      h(
        "div",
        { class: "section-head" },
        h("h3", null, pluralize(offered.length, what)),
        offered.length >= SEARCH_FROM && search.element,
      ),
      offered.map(({ element }) => element),
    ];
  }
}
