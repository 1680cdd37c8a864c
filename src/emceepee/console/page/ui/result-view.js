// What a tool answered: its content blocks as text and pictures, and everything as JSON behind a fold.

import { h } from "./dom.js";
import { jsonBlock, pretty, textBlock } from "./json-view.js";
import { list } from "../state/store.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
const OWN_BLOCKS = ["events_since_last_response", "pending_client_action"];

export function resultView(result, label = "Result") {
  const blocks = list(result?.content).filter((block) => !isOwnBlock(block));
  if (blocks.length === 0) return h("div", { class: "result" }, jsonBlock(result, label));
  const parts = blocks.map((block) => blockView(block, label));
  const structured = withoutNotices(result.structuredContent);
  if (structured !== undefined && !blocks.some((block) => saysTheSame(block, structured))) {
    parts.push(h("h4", null, "Structured content"), jsonBlock(structured, `${label}: structured content`));
  }
  parts.push(fold("Raw JSON", () => jsonBlock(result, `${label}: raw JSON`)));
  return h("div", { class: "result" }, parts);
}

/** What emceepee adds to a reply for callers that have no console. */
function isOwnBlock(block) {
  if (block?.type !== "text" || typeof block.text !== "string") return false;
  return OWN_BLOCKS.some((key) => block.text.startsWith(`{"${key}":`));
}

/** Structured content as the server sent it: notices stand under one key of emceepee's, which then holds nothing else. */
function withoutNotices(structured) {
  const own = structured?.emceepee;
  if (!own || !OWN_BLOCKS.some((key) => key in Object(own))) return structured;
  const { emceepee: _, ...rest } = structured;
  return rest;
}

function blockView(block, label) {
  if (block?.type === "text" && typeof block.text === "string") {
    const value = parsed(block.text);
    return value === undefined ? textBlock(block.text, label) : jsonBlock(value, label);
  }
  if (block?.type === "image" && PICTURES.has(block.mimeType) && BASE64.test(block.data ?? "")) {
    return h("img", {
      class: "picture",
      src: `data:${block.mimeType};base64,${block.data}`,
      alt: "Picture in the result",
    });
  }
  return jsonBlock(block, label);
}

function parsed(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const saysTheSame = (block, structured) =>
  block?.type === "text" && pretty(parsed(String(block.text)) ?? null) === pretty(structured);

/** A fold whose inside is made only when it is opened. */
export function fold(summary, make, props) {
  const details = h("details", { class: "fold", ...props }, h("summary", null, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}
