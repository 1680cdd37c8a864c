// What servers logged: through the protocol, and on their standard error and output.

import { bdi, h } from "../ui/dom.js";
import { LEVELS, logLine, logText } from "../ui/log-line.js";
import { sessionName } from "../state/session-names.js";
import { keyOf } from "./servers/server-card.js";
import { StreamView, distinct, serverChoice, sessionChoice } from "../ui/filtered-list.js";
import { oneLine } from "../text/display-text.js";

const FROM = ["info", "warning", "error"];

export function logsView(store) {
  return new StreamView(store, {
    title: "Logs",
    unit: "line",
    topic: "logs",
    items: (from) => from.logs,
    keyOf,
    make: (log) => logLine(log, { testid: "log-row", where: whereOf(store, log) }),
    textOf: (log) => `${log.server} ${log.level} ${log.logger ?? ""} ${logText(log.data)}`,
    choices: {
      session: sessionChoice(store),
      server: serverChoice(),
      level: {
        label: "Level",
        options: () => [["", "All levels"], ...FROM.map((level) => [level, `${level} and above`])],
        fits: (log, value) => LEVELS.indexOf(log.level) >= LEVELS.indexOf(value),
      },
      source: {
        label: "Source",
        options: (all) => distinct(all, (log) => log.source, "All sources"),
        fits: (log, value) => log.source === value,
      },
    },
    emptyTitle: "No log lines.",
    emptyText: "What servers log, and what they write to standard error, appears here.",
  });
}

const whereOf = (store, log) =>
  h("span", { title: sessionName(store, log.session) }, bdi(oneLine(log.server ?? "", 40)));
