// The result of a tool: its content blocks as text and images, and all of it as collapsible JSON.

import { asArray } from "../lib/safe-json.js";
import { disclosure } from "./disclosure.js";
import { h } from "./dom.js";
import { jsonBlock, prettyJson, textBlock } from "./json-view.js";

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
const NOTICE_KEYS = ["events_since_last_response", "pending_client_action", "session_moved", "state_not_saved"];
// One line of text may precede the JSON of a notice.
const NOTICE = new RegExp(`^(?:[A-Z][^\\n]{0,60}:\\n)?\\{"(?:${NOTICE_KEYS.join("|")})":`);

/**
 * @param {any} result
 * @param {string} [label]
 */
export function resultView(result, label = "Result") {
  const blocks = asArray(result?.content).filter((block) => !isNoticeBlock(block));
  if (blocks.length === 0) return h("div", { class: "result" }, jsonBlock(result, label));
  /** @type {Element[]} */
  const parts = blocks.map((block) => blockView(block, label));
  const structured = withoutNotices(result.structuredContent);
  if (structured !== undefined && !blocks.some((block) => isSameContent(block, structured))) {
    parts.push(h("h4", null, "Structured content"), jsonBlock(structured, `${label}: structured content`));
  }
  parts.push(disclosure("Raw JSON", () => jsonBlock(result, `${label}: raw JSON`)));
  return h("div", { class: "result" }, parts);
}

/**
 * Return whether emceepee added this block to a reply for callers without a console.
 * @param {any} block
 */
function isNoticeBlock(block) {
  return block?.type === "text" && typeof block.text === "string" && NOTICE.test(block.text);
}

/**
 * Structured content as the server sent it. Notices have one key of emceepee's own, which contains nothing else.
 * @param {any} structured
 */
function withoutNotices(structured) {
  const own = structured?.emceepee;
  if (!own || !NOTICE_KEYS.some((key) => key in Object(own))) return structured;
  const rest = { ...structured };
  delete rest.emceepee;
  return rest;
}

/**
 * One content block.
 * @param {any} block
 * @param {string} label
 */
export function blockView(block, label) {
  if (block?.type === "text" && typeof block.text === "string") {
    const value = parseJsonText(block.text);
    return value === undefined ? textBlock(block.text, label) : jsonBlock(value, label);
  }
  if (block?.type === "image" && IMAGE_TYPES.has(block.mimeType) && BASE64.test(block.data ?? "")) {
    return h("img", {
      class: "result-image",
      src: `data:${block.mimeType};base64,${block.data}`,
      alt: "Picture in the result",
    });
  }
  return jsonBlock(block, label);
}

/**
 * @param {string} text
 * @returns {unknown}
 */
function parseJsonText(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * @param {any} block
 * @param {unknown} structured
 */
const isSameContent = (block, structured) =>
  block?.type === "text" && prettyJson(parseJsonText(String(block.text)) ?? null) === prettyJson(structured);
