// What a person can do when there is nothing to see yet.

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
