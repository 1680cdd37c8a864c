// One line of a log.

import { singleLine } from "../lib/display-text.js";
import { formatFullTime, formatPreciseTime } from "../lib/format.js";
import { stringify } from "../lib/safe-json.js";
import { bdi, h } from "./dom.js";
import { expandableText } from "./expandable-text.js";

const MAX_TEXT = 1500;
export const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** @param {unknown} data */
export const logMessage = (data) => (typeof data === "string" ? data : stringify(data));

/**
 * @param {Wire.Log} log
 * @param {{ where?: Element, testid?: string }} [options]
 */
export function logLine(log, { where, testid } = {}) {
  const text = h("span", { class: "log-text" }, expandableText(logMessage(log.data), MAX_TEXT));
  return h(
    "div",
    { class: "log-line", testid, dataset: { level: log.level, source: log.source } },
    h("time", { title: formatFullTime(log.timestamp) }, formatPreciseTime(log.timestamp)),
    h("span", { class: "log-level" }, LEVELS.includes(log.level) ? log.level : singleLine(log.level ?? "–", 12)),
    where && h("span", { class: "log-where" }, where),
    h("span", { class: "log-source" }, bdi(singleLine(log.logger ? `${log.source} ${log.logger}` : log.source, 40))),
    log.isUnsure === true &&
      h("span", { class: "tag", title: "Other calls of this server ran at the same time" }, "maybe another call"),
    text,
  );
}
