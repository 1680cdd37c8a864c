// The contents of a resource, and the messages of a prompt. They come from a server, so every value is checked here.

import { singleLine } from "../../lib/display-text.js";
import { asArray } from "../../lib/safe-json.js";
import { disclosure } from "../../ui/disclosure.js";
import { bdi, h } from "../../ui/dom.js";
import { jsonBlock, textBlock } from "../../ui/json-view.js";
import { blockView } from "../../ui/result-view.js";

/** @param {any} answer */
export function resourceView(answer) {
  const contents = asArray(answer?.contents);
  if (answer?.proxy_task) return taskNote();
  if (contents.length === 0) return jsonBlock(answer, "Resource");
  return h(
    "div",
    { class: "result" },
    contents.map((content) => [head(content?.mimeType), contentView(content)]),
    disclosure("Raw JSON", () => jsonBlock(answer, "Resource: raw JSON")),
  );
}

/** @param {any} content */
function contentView(content) {
  if (typeof content?.text === "string") return textBlock(content.text, "Resource");
  if (typeof content?.blob === "string" && String(content.mimeType).startsWith("image/"))
    return blockView({ type: "image", mimeType: content.mimeType, data: content.blob }, "Resource");
  return jsonBlock(content, "Resource");
}

/** @param {any} answer */
export function promptView(answer) {
  const messages = asArray(answer?.messages);
  if (answer?.proxy_task) return taskNote();
  if (messages.length === 0) return jsonBlock(answer, "Prompt");
  return h(
    "div",
    { class: "result" },
    messages.map((message) => [
      head(message?.role),
      asArray([message?.content].flat()).map((block) => blockView(block, "Prompt")),
    ]),
    disclosure("Raw JSON", () => jsonBlock(answer, "Prompt: raw JSON")),
  );
}

/** @param {unknown} label */
const head = (label) =>
  typeof label === "string" && h("p", null, h("span", { class: "tag" }, bdi(singleLine(label, 60))));

const taskNote = () =>
  h("p", { class: "muted" }, "It takes long, and goes on as a task: see ", h("a", { href: "#tasks" }, "Tasks"), ".");
