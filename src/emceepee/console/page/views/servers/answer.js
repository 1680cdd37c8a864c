// The answer, below its request.

import { messageOf } from "../../lib/errors.js";
import { bdi, h, replaceContent } from "../../ui/dom.js";

export class Answer {
  /** @type {symbol | null} */
  #asked = null;

  constructor() {
    this.element = h("div", { class: "answer", testid: "answer", "aria-live": "polite" });
  }

  /**
   * @param {() => Promise<Node>} ask
   */
  async show(ask) {
    const asked = (this.#asked = Symbol("asked"));
    replaceContent(this.element, h("p", { class: "muted" }, "Asking…"));
    /** @type {Node} */
    let answer;
    try {
      answer = await ask();
    } catch (error) {
      answer = h("p", { class: "error-text", role: "alert" }, bdi(messageOf(error)));
    }
    if (this.#asked === asked) replaceContent(this.element, answer);
  }
}
