// The resources of one server, and their contents.

import { singleLine } from "../../lib/display-text.js";
import { disclosure } from "../../ui/disclosure.js";
import { bdi, h, nameLabel } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { Answer } from "./answer.js";
import { OfferPanel } from "./offer-panel.js";
import { resourceView } from "./resource-view.js";

export class ResourcesPanel extends OfferPanel {
  /**
   * @param {string} server
   * @param {import("../../calls/tool-catalog.js").ToolCatalog} catalog
   * @param {(panel: OfferPanel) => void} onShow
   */
  constructor(server, catalog, onShow) {
    super(server, { what: "resource", onShow, load: () => this.#list() });
    this.catalog = catalog;
    this.address = h("input", {
      type: "text",
      class: "input code",
      "aria-label": "Address of a resource",
      placeholder: "Address of a resource",
      spellcheck: "false",
      autocomplete: "off",
    });
    this.answer = new Answer();
    this.form = h(
      "form",
      { class: "address-form", testid: "resource-form", novalidate: true, "aria-label": "Read a resource" },
      this.address,
      h("button", { type: "submit", class: "button primary" }, "Read"),
    );
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const uri = this.address.value.trim();
      if (uri) this.answer.show(() => this.#read(uri));
    });
  }

  async #list() {
    const [resources, templates] = await Promise.all([
      this.catalog.listResources(this.server),
      this.catalog.listTemplates(this.server).catch(() => ({ entries: [] })), // many servers do not support them
    ]);
    const found = resources.entries.filter((each) => typeof each?.uri === "string");
    const forms = templates.entries.filter((each) => typeof each?.uriTemplate === "string");
    return [
      this.list(
        found.map((resource) => ({ element: this.#resource(resource), text: words(resource) })),
        { errors: resources.errors },
      ),
      forms.length > 0 &&
        this.list(
          forms.map((template) => ({ element: this.#template(template), text: words(template) })),
          { what: "template" },
        ),
      h("h3", null, "Read an address"),
      this.form,
      this.answer.element,
    ];
  }

  /** @param {Wire.Resource} resource */
  #resource(resource) {
    const uri = resource.uri ?? "";
    return disclosure(
      summaryOf(resource, uri),
      () => {
        const answer = new Answer();
        const read = h(
          "button",
          { type: "button", class: "button primary", onclick: () => answer.show(() => this.#read(uri)) },
          "Read",
        );
        return h(
          "div",
          { class: "tool-details" },
          aboutOf(resource),
          h("p", { class: "code muted" }, bdi(uri)),
          h("div", { class: "actions" }, read),
          answer.element,
        );
      },
      { class: "disclosure tool", testid: "resource", dataset: { name: uri } },
    );
  }

  /** @param {Wire.Resource} template */
  #template(template) {
    const form = template.uriTemplate ?? "";
    const use = () => {
      this.address.value = form;
      this.address.focus();
    };
    return disclosure(
      summaryOf(template, form),
      () =>
        h(
          "div",
          { class: "tool-details" },
          aboutOf(template),
          h("p", { class: "code muted" }, bdi(form)),
          h(
            "div",
            { class: "actions" },
            h("button", { type: "button", class: "button", onclick: use }, "Fill in below"),
          ),
        ),
      { class: "disclosure tool", testid: "template", dataset: { name: form } },
    );
  }

  /** @param {string} uri */
  async #read(uri) {
    return resourceView(await this.catalog.readResource(this.server, uri));
  }
}

/** @param {Wire.Resource} resource */
const words = ({ uri, uriTemplate, name, title, description }) =>
  [uri, uriTemplate, name, title, description].filter(Boolean).join(" ");

/**
 * @param {Wire.Resource} resource
 * @param {string} uri
 */
const summaryOf = ({ name, title, description, mimeType }, uri) => [
  h("code", { class: "tool-name" }, nameLabel(title ?? name ?? uri)),
  h(
    "span",
    { class: "tool-summary muted" },
    bdi(singleLine([mimeType, description ?? uri].filter(Boolean).join(" · "), 160)),
  ),
];

/** @param {Wire.Resource} resource */
const aboutOf = ({ description }) => description && h("p", { class: "message" }, expandableText(description, 1500));
