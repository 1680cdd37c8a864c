// Log messages of servers: from the protocol, and from their standard error and output.

import { singleLine } from "../lib/display-text.js";
import { objectKey } from "../lib/object-key.js";
import { sessionName } from "../state/session-names.js";
import { bdi, h } from "../ui/dom.js";
import { FilteredList, distinctOptions, serverFilter, sessionFilter } from "../ui/filtered-list.js";
import { LEVELS, logLine, logMessage } from "../ui/log-line.js";

/**
 * @import { Store } from "../state/store.js"
 */

/** @type {(level: string) => import("../ui/controls.js").Option} */
const asOption = (level) => [level, `${level} and above`];
const MIN_LEVELS = ["info", "warning", "error"];

/**
 * @param {Store} store
 * @returns {FilteredList<Wire.Log>}
 */
export function logsView(store) {
  return new FilteredList(store, {
    title: "Logs",
    unit: "line",
    topic: "logs",
    items: (from) => from.logs,
    keyOf: objectKey,
    make: (log) => logLine(log, { testid: "log-row", where: serverLabel(store, log) }),
    textOf: (log) => `${log.server} ${log.level} ${log.logger ?? ""} ${logMessage(log.data)}`,
    filters: {
      session: sessionFilter(store),
      server: serverFilter(),
      level: {
        label: "Level",
        options: () => [["", "All levels"], ...MIN_LEVELS.map(asOption)],
        matches: (log, value) => LEVELS.indexOf(log.level) >= LEVELS.indexOf(value),
      },
      source: {
        label: "Source",
        options: (all) => distinctOptions(all, (log) => log.source, "All sources"),
        matches: (log, value) => log.source === value,
      },
    },
    emptyTitle: "No log lines.",
    emptyText: "What servers log, and what they write to standard error, appears here.",
  });
}

/**
 * @param {Store} store
 * @param {Wire.Log} log
 */
const serverLabel = (store, log) =>
  h("span", { title: sessionName(store, log.session) }, bdi(singleLine(log.server ?? "", 40)));
