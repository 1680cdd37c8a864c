// The events of all sessions.

import { singleLine } from "../lib/display-text.js";
import { formatFullTime, formatPreciseTime } from "../lib/format.js";
import { stringify } from "../lib/safe-json.js";
import { disclosure } from "../ui/disclosure.js";
import { bdi, h } from "../ui/dom.js";
import { FilteredList, distinctOptions, serverFilter, sessionFilter } from "../ui/filtered-list.js";
import { jsonBlock } from "../ui/json-view.js";
import { sessionChip } from "../ui/session-chip.js";

/**
 * @import { Store } from "../state/store.js"
 */

const FAILURE = /failed|crashed|disconnected|degraded|(task|elicitation|sampling)_expired/;
const SUCCESS = /completed|connected|reconnected|restored|restarted|started/;

/**
 * @param {Store} store
 * @returns {FilteredList<Wire.SessionEvent>}
 */
export function eventsView(store) {
  return new FilteredList(store, {
    title: "Events",
    unit: "event",
    topic: "events",
    items: (from) => from.events,
    keyOf: (event) => `${event.session}/${event.id}`,
    make: (event) => eventRow(store, event),
    textOf: (event) => `${event.type} ${event.server ?? ""} ${stringify(event.data ?? null)}`,
    filters: {
      session: sessionFilter(store),
      server: serverFilter(),
      type: {
        label: "Type",
        options: (all) => distinctOptions(all, (event) => event.type, "All types"),
        matches: (event, value) => event.type === value,
      },
    },
    emptyTitle: "No events.",
    emptyText: "Connections, tasks, questions and timers leave their traces here.",
  });
}

/**
 * @param {Store} store
 * @param {Wire.SessionEvent} event
 */
function eventRow(store, event) {
  const isBad = FAILURE.test(event.type) && event.data?.reason !== "answered";
  const tone = isBad ? "bad" : SUCCESS.test(event.type) ? "good" : "plain";
  const summary = [
    h("time", { title: formatFullTime(event.createdAt) }, formatPreciseTime(event.createdAt)),
    h("span", { class: "event-type", dataset: { tone } }, bdi(singleLine(event.type, 60))),
    event.server && h("span", { class: "event-server" }, bdi(singleLine(event.server, 60))),
    h("span", { class: "event-summary muted" }, bdi(summarize(event.data))),
    sessionChip(store, event.session),
  ];
  return disclosure(summary, () => jsonBlock(event.data ?? null, `Data of ${event.type}`), {
    class: "disclosure event",
    testid: "event-row",
    dataset: { id: event.id, type: event.type },
  });
}

/** @param {any} data */
function summarize(data) {
  if (typeof data !== "object" || data === null) return "";
  return singleLine(data.message ?? data.reason ?? data.error ?? data.toolName ?? data.method ?? "", 160);
}
