// A short list of notable requests, each with a link to its details.

import { singleLine } from "../../lib/display-text.js";
import { formatDuration, formatTime } from "../../lib/format.js";
import { shortSessionName } from "../../state/session-names.js";
import { bdi, h, nameLabel, reconcile, setAttribute, setText } from "../../ui/dom.js";

/**
 * @import { Store } from "../../state/store.js"
 */

export class RequestList {
  /**
   * @param {Store} store
   * @param {{ title: string, empty: string, testid: string, showsErrors?: boolean }} settings
   *   `showsErrors`: what went wrong and when, instead of where and how long it took.
   */
  constructor(store, { title, empty, testid, showsErrors = false }) {
    this.store = store;
    this.showsErrors = showsErrors;
    this.empty = h("p", { class: "muted" }, empty);
    this.rows = h("ul", { class: "short-list" });
    this.element = h(
      "section",
      { class: "card", testid, "aria-label": title },
      h("h2", null, title),
      this.empty,
      this.rows,
    );
  }

  /** @param {Wire.RequestRow[]} rows */
  update(rows) {
    this.empty.hidden = rows.length > 0;
    reconcile(
      this.rows,
      rows,
      ({ id }) => id,
      (row) => this.#row(row),
    );
  }

  /**
   * @param {Wire.RequestRow} made
   * @returns {import("../../ui/dom.js").Part}
   */
  #row(made) {
    const took = h("span", { class: "short-took" });
    const about = bdi("", { class: "muted short-about" });
    const link = h(
      "a",
      { href: `#waterfall?search=${encodeURIComponent(made.id)}` },
      h("span", { class: "short-name" }, nameLabel(made.name)),
      about,
      took,
    );
    const update = (/** @type {Wire.RequestRow} */ row) => {
      const where = [row.server, shortSessionName(this.store, row.session)].filter(Boolean).join(" · ");
      setText(about, singleLine((this.showsErrors && row.error) || where, 120));
      const ms = (row.endedAt ?? row.startedAt) - row.startedAt;
      setText(took, this.showsErrors ? formatTime(row.startedAt) : formatDuration(ms));
      setAttribute(link, "title", row.error ?? where);
    };
    return { element: h("li", null, link), update };
  }
}
