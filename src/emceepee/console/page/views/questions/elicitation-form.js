// A server's question to the person: a form, or a link to open.

import { h } from "../../ui/dom.js";
import { SchemaForm } from "../../forms/schema-form.js";
import { LinkOffer } from "./link-prompt.js";

export class ElicitationBody {
  constructor(question) {
    this.isLink = question.mode === "url";
    this.inside = this.isLink ? new LinkOffer(question.url) : new SchemaForm(question.requestedSchema);
    this.element = this.inside.element;
    if (!this.isLink && !this.inside.isFormable) {
      this.raw = h("textarea", {
        class: "input code",
        rows: "8",
        spellcheck: "false",
        "aria-label": "Answer as a JSON object",
      });
      this.element.append(
        h("p", { class: "muted" }, "This form has too many fields to show. Write the answer as a JSON object."),
        this.raw,
      );
    }
    this.actions = [
      { label: "Accept", kind: "primary", run: () => this.#accept() },
      { label: "Decline", run: () => this.#without("decline", "Declined.") },
      { label: "Cancel", kind: "quiet", run: () => this.#without("cancel", "Cancelled.") },
    ];
  }

  #accept() {
    if (this.isLink) return { path: "/console/answer", body: { action: "accept" }, done: "Accepted." };
    const content = this.raw ? this.#rawContent() : this.inside.read();
    return content && { path: "/console/answer", body: { action: "accept", content }, done: "Your answer was sent." };
  }

  #rawContent() {
    try {
      this.raw.setCustomValidity("");
      return JSON.parse(this.raw.value);
    } catch (error) {
      this.raw.setCustomValidity(`This is not JSON: ${error.message}`);
      this.raw.reportValidity();
      return null;
    }
  }

  #without(action, done) {
    return { path: "/console/answer", body: { action }, done };
  }

  showProblems(problems) {
    return this.isLink ? problems : this.inside.showProblems(problems);
  }

  setDisabled(isDisabled) {
    this.inside.setDisabled(isDisabled);
    if (this.raw) this.raw.disabled = isDisabled;
  }
}
