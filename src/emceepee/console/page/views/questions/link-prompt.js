// A link that a server asks the person to open. Its destination is shown before it is opened.

import { parseWebAddress } from "../../lib/web-address.js";
import { bdi, h } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { icon } from "../../ui/icons.js";

export class LinkPrompt {
  /** @param {string | undefined} address */
  constructor(address) {
    const url = parseWebAddress(address);
    this.link =
      url &&
      h(
        "a",
        { class: "button", href: url.href, target: "_blank", rel: "noopener noreferrer" },
        icon("external", 16),
        "Open link",
      );
    this.element = h(
      "div",
      { class: "link-prompt" },
      url ? this.#preview(url) : this.#warning(),
      h("p", { class: "address code" }, expandableText(String(address ?? ""), 600)),
      this.link,
    );
  }

  /**
   * The host as the browser will request it: letters of other scripts that imitate Latin ones appear as xn--….
   * @param {URL} url
   */
  #preview(url) {
    const warnings = [];
    if (url.protocol === "http:") warnings.push("The connection is not encrypted.");
    if (url.username || url.password)
      warnings.push("The address begins with a user name, which can imitate another host.");
    if (/(^|\.)xn--/.test(url.hostname)) warnings.push("The host is written with letters that can imitate others.");
    return [
      h(
        "p",
        { class: "host-line" },
        h("span", { class: "muted" }, "Opens"),
        bdi(url.host, { class: "host", testid: "question-host" }),
      ),
      warnings.map((warning) => h("p", { class: "warning-text" }, icon("warning", 16), warning)),
    ];
  }

  #warning() {
    return h(
      "p",
      { class: "warning-text" },
      icon("warning", 16),
      "This is no web address (http or https), so it cannot be opened from here.",
    );
  }

  /** @param {boolean} isDisabled */
  setDisabled(isDisabled) {
    this.link?.classList.toggle("disabled", isDisabled);
    if (isDisabled) this.link?.setAttribute("aria-disabled", "true");
    else this.link?.removeAttribute("aria-disabled");
  }
}
