// One line of a log.

import { bdi, h } from "./dom.js";
import { fullTime, preciseTime } from "../text/format.js";
import { stringify } from "../text/safe-json.js";
import { longText } from "./expandable-text.js";
import { oneLine } from "../text/display-text.js";

const MOST = 1500;
export const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

export const logText = (data) => (typeof data === "string" ? data : stringify(data));

export function logLine(log, { where, testid } = {}) {
  const words = h("span", { class: "log-text" }, longText(logText(log.data), MOST));
  return h(
    "div",
    { class: "log-line", testid, dataset: { level: log.level, source: log.source } },
    h("time", { title: fullTime(log.timestamp) }, preciseTime(log.timestamp)),
    h("span", { class: "log-level" }, LEVELS.includes(log.level) ? log.level : oneLine(log.level ?? "–", 12)),
    where && h("span", { class: "log-where" }, where),
    h("span", { class: "log-source" }, bdi(oneLine(log.logger ? `${log.source} ${log.logger}` : log.source, 40))),
    words,
  );
}
