// The prompts of one server, and their messages.

import { SchemaForm } from "../../forms/schema-form.js";
import { singleLine } from "../../lib/display-text.js";
import { asArray } from "../../lib/safe-json.js";
import { disclosure } from "../../ui/disclosure.js";
import { bdi, h, nameLabel } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { Answer } from "./answer.js";
import { OfferPanel } from "./offer-panel.js";
import { promptView } from "./resource-view.js";

export class PromptsPanel extends OfferPanel {
  /**
   * @param {string} server
   * @param {import("../../calls/tool-catalog.js").ToolCatalog} catalog
   * @param {(panel: OfferPanel) => void} onShow
   */
  constructor(server, catalog, onShow) {
    super(server, { what: "prompt", onShow, load: () => this.#list() });
    this.catalog = catalog;
  }

  async #list() {
    const { entries, errors } = await this.catalog.listPrompts(this.server);
    const named = entries.filter((prompt) => typeof prompt?.name === "string");
    return this.list(
      named.map((prompt) => ({
        element: this.#prompt(prompt),
        text: `${prompt.name} ${prompt.title ?? ""} ${prompt.description ?? ""}`,
      })),
      { errors },
    );
  }

  /** @param {Wire.Prompt} prompt */
  #prompt(prompt) {
    const summary = [
      h("code", { class: "tool-name" }, nameLabel(prompt.name)),
      h("span", { class: "tool-summary muted" }, bdi(singleLine(prompt.title ?? prompt.description ?? "", 160))),
    ];
    return disclosure(summary, () => this.#details(prompt), {
      class: "disclosure tool",
      testid: "prompt",
      dataset: { name: prompt.name },
    });
  }

  /** @param {Wire.Prompt} prompt */
  #details(prompt) {
    const fields = new SchemaForm(schemaOf(prompt), { isMultiline: true });
    const answer = new Answer();
    const form = h(
      "form",
      { class: "tool-form", testid: "prompt-form", novalidate: true, "aria-label": `Get ${prompt.name}` },
      fields.isEmpty && h("p", { class: "muted" }, "This prompt takes no arguments."),
      fields.element,
      h("div", { class: "actions" }, h("button", { type: "submit", class: "button primary" }, "Get")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const args = fields.read();
      if (args) answer.show(async () => promptView(await this.catalog.getPrompt(this.server, prompt.name, args)));
    });
    return h(
      "div",
      { class: "tool-details" },
      prompt.description && h("p", { class: "message" }, expandableText(prompt.description, 1500)),
      form,
      answer.element,
    );
  }
}

/**
 * All arguments of prompts are strings.
 * @param {Wire.Prompt} prompt
 */
function schemaOf(prompt) {
  const properties = Object.create(null);
  const given = asArray(prompt.arguments).filter((argument) => typeof argument?.name === "string");
  for (const { name, title, description } of given) properties[name] = { type: "string", title, description };
  return {
    type: "object",
    properties,
    required: given.filter(({ required }) => required === true).map(({ name }) => name),
  };
}
