// A server's question to the person: a form, or a link to open.

import { SchemaForm } from "../../forms/schema-form.js";
import { messageOf } from "../../lib/errors.js";
import { h } from "../../ui/dom.js";
import { LinkPrompt } from "./link-prompt.js";

/** @import { Action, Post } from "./question-card.js" */

export class ElicitationForm {
  /** @param {Wire.Question} question */
  constructor(question) {
    this.link = question.mode === "url" ? new LinkPrompt(question.url) : null;
    this.form = this.link ? null : new SchemaForm(question.requestedSchema);
    this.element = (this.link ?? this.form)?.element ?? h("div");
    this.raw = this.form && !this.form.isFormable ? this.#appendRawInput() : null;
    /** @type {Action[]} */
    this.actions = [
      { label: "Accept", kind: "primary", run: () => this.#accept() },
      { label: "Decline", run: () => this.#respond("decline", "Declined.") },
      { label: "Cancel", kind: "quiet", run: () => this.#respond("cancel", "Cancelled.") },
    ];
  }

  #appendRawInput() {
    const raw = h("textarea", {
      class: "input code",
      rows: "8",
      spellcheck: "false",
      "aria-label": "Answer as a JSON object",
    });
    this.element.append(
      h("p", { class: "muted" }, "This form has too many fields to show. Write the answer as a JSON object."),
      raw,
    );
    return raw;
  }

  /** @returns {Post | null} */
  #accept() {
    if (!this.form) return { path: "/console/answer", body: { action: "accept" }, done: "Accepted." };
    const content = this.raw ? this.#rawContent(this.raw) : this.form.read();
    return content && { path: "/console/answer", body: { action: "accept", content }, done: "Your answer was sent." };
  }

  /** @param {HTMLTextAreaElement} raw */
  #rawContent(raw) {
    try {
      raw.setCustomValidity("");
      return JSON.parse(raw.value);
    } catch (error) {
      raw.setCustomValidity(`This is not JSON: ${messageOf(error)}`);
      raw.reportValidity();
      return null;
    }
  }

  /**
   * @param {string} action
   * @param {string} done
   * @returns {Post}
   */
  #respond(action, done) {
    return { path: "/console/answer", body: { action }, done };
  }

  /**
   * Show the problems that belong to no field.
   * @param {Wire.Problem[]} problems
   */
  showProblems(problems) {
    return this.form?.showProblems(problems) ?? problems;
  }

  /** @param {boolean} isDisabled */
  setDisabled(isDisabled) {
    this.link?.setDisabled(isDisabled);
    this.form?.setDisabled(isDisabled);
    if (this.raw) this.raw.disabled = isDisabled;
  }
}
