// The tools of one server, once the person asked to see them.

import { singleLine } from "../../lib/display-text.js";
import { messageOf } from "../../lib/errors.js";
import { pluralize } from "../../lib/format.js";
import { searchBox } from "../../ui/controls.js";
import { disclosure } from "../../ui/disclosure.js";
import { bdi, h, nameLabel, replaceContent } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { jsonBlock } from "../../ui/json-view.js";
import { ToolForm } from "./tool-form.js";

const SEARCH_FROM = 8; // from here on, a search box helps

export class ToolsPanel {
  /**
   * @param {string} server
   * @param {import("../../calls/tool-catalog.js").ToolCatalog} catalog
   */
  constructor(server, catalog) {
    this.server = server;
    this.catalog = catalog;
    this.button = h("button", { type: "button", class: "button", onclick: () => this.#load() }, "Show tools");
    this.content = h("div", { class: "tools", "aria-live": "polite" });
    this.element = h(
      "section",
      { class: "tools-panel", "aria-label": `Tools of ${server}` },
      this.button,
      this.content,
    );
  }

  async #load() {
    const page = `#servers/${encodeURIComponent(this.server)}`;
    if (location.hash !== page) location.hash = page;
    this.button.disabled = true;
    replaceContent(this.content, h("p", { class: "muted" }, "Asking the server for its tools…"));
    try {
      this.#render(await this.catalog.listTools(this.server));
      this.button.textContent = "Show tools again";
    } catch (error) {
      replaceContent(this.content, h("p", { class: "error-text", role: "alert" }, bdi(messageOf(error))));
    }
    this.button.disabled = false;
  }

  /** @param {{ tools: Wire.Tool[], errors: string[] }} listed */
  #render({ tools, errors }) {
    const named = tools.filter((tool) => typeof tool?.name === "string");
    const elements = named.map((tool) => this.#tool(tool));
    const search = searchBox("Search tools", "filter-tools", (text) => {
      const wanted = text.toLowerCase();
      named.forEach((tool, index) => {
        elements[index].hidden = !`${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`
          .toLowerCase()
          .includes(wanted);
      });
    });
    replaceContent(
      this.content,
      errors.map((error) => h("p", { class: "error-text" }, bdi(error))),
      h(
        "div",
        { class: "section-head" },
        h("h3", null, pluralize(named.length, "tool")),
        named.length >= SEARCH_FROM && search.element,
      ),
      elements,
    );
  }

  /** @param {Wire.Tool} tool */
  #tool(tool) {
    const about = tool.title ?? tool.annotations?.title ?? tool.description ?? "";
    const summary = [
      h("code", { class: "tool-name" }, nameLabel(tool.name)),
      h("span", { class: "tool-summary muted" }, bdi(singleLine(about, 160))),
    ];
    return disclosure(summary, () => this.#details(tool), {
      class: "disclosure tool",
      testid: "tool",
      dataset: { name: tool.name },
    });
  }

  /** @param {Wire.Tool} tool */
  #details(tool) {
    const form = new ToolForm(tool, (args, timeoutMs) => this.catalog.call(this.server, tool.name, args, timeoutMs));
    return h(
      "div",
      { class: "tool-details" },
      tool.description && h("p", { class: "message" }, expandableText(tool.description, 1500)),
      annotationTags(tool.annotations),
      form.element,
      disclosure("Schema", () =>
        jsonBlock({ inputSchema: tool.inputSchema, outputSchema: tool.outputSchema }, `Schema of ${tool.name}`),
      ),
    );
  }
}

/**
 * What the server says of its tool; it need not be true.
 * @param {Wire.Tool["annotations"]} annotations
 */
function annotationTags(annotations) {
  const labels = [
    annotations?.readOnlyHint === true && "only reads",
    annotations?.destructiveHint === true && "may destroy",
    annotations?.idempotentHint === true && "safe to repeat",
    annotations?.openWorldHint === true && "reaches outside",
  ].filter(Boolean);
  return (
    labels.length > 0 &&
    h(
      "p",
      { class: "tags" },
      labels.map((text) => h("span", { class: "tag" }, text)),
    )
  );
}
