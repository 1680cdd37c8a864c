// The tools of one server, once the person asked to see them.

import { searchBox } from "../../ui/controls.js";
import { bdi, fill, h, nameOf } from "../../ui/dom.js";
import { count } from "../../text/format.js";
import { jsonBlock } from "../../ui/json-view.js";
import { longText } from "../../ui/expandable-text.js";
import { fold } from "../../ui/result-view.js";
import { ToolForm } from "./tool-form.js";
import { oneLine } from "../../text/display-text.js";

const MANY = 8; // from here on, a search box helps

export class ToolsPanel {
  constructor(server, toolbox) {
    this.server = server;
    this.toolbox = toolbox;
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
    fill(this.content, h("p", { class: "muted" }, "Asking the server for its tools…"));
    try {
      this.#render(await this.toolbox.toolsOf(this.server));
      this.button.textContent = "Show tools again";
    } catch (error) {
      fill(this.content, h("p", { class: "error-text", role: "alert" }, bdi(error.message)));
    }
    this.button.disabled = false;
  }

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
    fill(
      this.content,
      errors.map((error) => h("p", { class: "error-text" }, bdi(error))),
      h(
        "div",
        { class: "section-head" },
        h("h3", null, count(named.length, "tool")),
        named.length >= MANY && search.element,
      ),
      elements,
    );
  }

  #tool(tool) {
    const about = tool.title ?? tool.annotations?.title ?? tool.description ?? "";
    const summary = [
      h("code", { class: "tool-name" }, nameOf(tool.name)),
      h("span", { class: "tool-about muted" }, bdi(oneLine(about, 160))),
    ];
    return fold(summary, () => this.#inside(tool), {
      class: "fold tool",
      testid: "tool",
      dataset: { name: tool.name },
    });
  }

  #inside(tool) {
    const form = new ToolForm(tool, (args, timeoutMs) => this.toolbox.call(this.server, tool.name, args, timeoutMs));
    return h(
      "div",
      { class: "tool-inside" },
      tool.description && h("p", { class: "message" }, longText(tool.description, 1500)),
      hints(tool.annotations),
      form.element,
      fold("Schema", () =>
        jsonBlock({ inputSchema: tool.inputSchema, outputSchema: tool.outputSchema }, `Schema of ${tool.name}`),
      ),
    );
  }
}

/** What the server says of its tool; it need not be true. */
function hints(annotations) {
  const said = [
    annotations?.readOnlyHint === true && "only reads",
    annotations?.destructiveHint === true && "may destroy",
    annotations?.idempotentHint === true && "safe to repeat",
    annotations?.openWorldHint === true && "reaches outside",
  ].filter(Boolean);
  return (
    said.length > 0 &&
    h(
      "p",
      { class: "tags" },
      said.map((text) => h("span", { class: "tag" }, text)),
    )
  );
}
