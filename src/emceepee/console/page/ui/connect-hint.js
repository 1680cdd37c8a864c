// Instructions for a person while there is no data to show.

import { copyToClipboard } from "./clipboard.js";
import { h } from "./dom.js";

export function connectHint() {
  const address = `${location.origin}/mcp`;
  const command = `claude mcp add --transport http emceepee ${address}`;
  return [
    h("p", null, "Connect a client to ", h("code", null, address), " and call a tool."),
    h(
      "div",
      { class: "command" },
      h("code", null, command),
      h(
        "button",
        { type: "button", class: "button small", onclick: () => copyToClipboard(command, "Command") },
        "Copy",
      ),
    ),
  ];
}
