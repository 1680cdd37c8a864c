// The offers of a server, one type at a time.

import { h } from "../../ui/dom.js";
import { PromptsPanel } from "./prompts-panel.js";
import { ResourcesPanel } from "./resources-panel.js";
import { ToolsPanel } from "./tools-panel.js";

export class Offers {
  /**
   * @param {string} server
   * @param {import("../../calls/tool-catalog.js").ToolCatalog} catalog
   */
  constructor(server, catalog) {
    const show = (/** @type {import("./offer-panel.js").OfferPanel} */ shown) => {
      for (const panel of panels) panel.setShown(panel === shown);
    };
    const panels = [
      new ToolsPanel(server, catalog, show),
      new ResourcesPanel(server, catalog, show),
      new PromptsPanel(server, catalog, show),
    ];
    this.element = h(
      "section",
      { class: "tools-panel", "aria-label": `What ${server} offers` },
      h(
        "div",
        { class: "actions" },
        panels.map(({ button }) => button),
      ),
      panels.map(({ content }) => content),
    );
  }
}
