// The tools of one server, after the person opened them.

import { singleLine } from "../../lib/display-text.js";
import { disclosure } from "../../ui/disclosure.js";
import { bdi, h, nameLabel } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { jsonBlock } from "../../ui/json-view.js";
import { OfferPanel } from "./offer-panel.js";
import { ToolForm } from "./tool-form.js";

export class ToolsPanel extends OfferPanel {
  /**
   * @param {string} server
   * @param {import("../../calls/tool-catalog.js").ToolCatalog} catalog
   * @param {(panel: OfferPanel) => void} onShow
   */
  constructor(server, catalog, onShow) {
    super(server, { what: "tool", onShow, load: () => this.#list() });
    this.catalog = catalog;
  }

  async #list() {
    const { entries, errors } = await this.catalog.listTools(this.server);
    const named = entries.filter((tool) => typeof tool?.name === "string");
    return this.list(
      named.map((tool) => ({
        element: this.#tool(tool),
        text: `${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`,
      })),
      { errors },
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
 * The server's hints about its tool, which need not be true.
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
