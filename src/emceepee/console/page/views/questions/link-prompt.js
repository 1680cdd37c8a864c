// A link that a server wants opened. The person sees where it leads before anything is opened.

import { bdi, h } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { longText } from "../../ui/expandable-text.js";

function parsed(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

export class LinkOffer {
  constructor(address) {
    const url = parsed(address);
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
      { class: "link-offer" },
      url ? this.#offer(url) : this.#warning(),
      h("p", { class: "address code" }, longText(String(address ?? ""), 600)),
      this.link,
    );
  }

  // The host as the browser will ask for it: letters of other scripts that imitate Latin ones show as xn--….
  #offer(url) {
    const doubts = [];
    if (url.protocol === "http:") doubts.push("The connection is not encrypted.");
    if (url.username || url.password)
      doubts.push("The address begins with a user name, which can imitate another host.");
    if (/(^|\.)xn--/.test(url.hostname)) doubts.push("The host is written with letters that can imitate others.");
    return [
      h(
        "p",
        { class: "host-line" },
        h("span", { class: "muted" }, "Opens"),
        bdi(url.host, { class: "host", testid: "question-host" }),
      ),
      doubts.map((doubt) => h("p", { class: "warning-text" }, icon("warning", 16), doubt)),
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

  setDisabled(isDisabled) {
    this.link?.classList.toggle("disabled", isDisabled);
    if (isDisabled) this.link?.setAttribute("aria-disabled", "true");
    else this.link?.removeAttribute("aria-disabled");
  }
}
