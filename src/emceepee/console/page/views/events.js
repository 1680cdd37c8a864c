// What happened, as sessions were told.

import { bdi, h } from "../ui/dom.js";
import { fullTime, preciseTime } from "../text/format.js";
import { stringify } from "../text/safe-json.js";
import { jsonBlock } from "../ui/json-view.js";
import { sessionChip } from "../state/session-names.js";
import { fold } from "../ui/result-view.js";
import { StreamView, distinct, serverChoice, sessionChoice } from "../ui/filtered-list.js";
import { oneLine } from "../text/display-text.js";

const BAD = /failed|crashed|disconnected|degraded|(task|elicitation|sampling)_expired/;
const GOOD = /completed|connected|reconnected|restored|restarted|started/;

export function eventsView(store) {
  return new StreamView(store, {
    title: "Events",
    unit: "event",
    topic: "events",
    items: (from) => from.events,
    keyOf: (event) => `${event.session}/${event.id}`,
    make: (event) => eventRow(store, event),
    textOf: (event) => `${event.type} ${event.server ?? ""} ${stringify(event.data ?? null)}`,
    choices: {
      session: sessionChoice(store),
      server: serverChoice(),
      type: {
        label: "Type",
        options: (all) => distinct(all, (event) => event.type, "All types"),
        fits: (event, value) => event.type === value,
      },
    },
    emptyTitle: "No events.",
    emptyText: "Connections, tasks, questions and timers leave their traces here.",
  });
}

function eventRow(store, event) {
  const isBad = BAD.test(event.type) && event.data?.reason !== "answered";
  const tone = isBad ? "bad" : GOOD.test(event.type) ? "good" : "plain";
  const summary = [
    h("time", { title: fullTime(event.createdAt) }, preciseTime(event.createdAt)),
    h("span", { class: "event-type", dataset: { tone } }, bdi(oneLine(event.type, 60))),
    event.server && h("span", { class: "event-server" }, bdi(oneLine(event.server, 60))),
    h("span", { class: "event-about muted" }, bdi(about(event.data))),
    sessionChip(store, event.session),
  ];
  return fold(summary, () => jsonBlock(event.data ?? null, `Data of ${event.type}`), {
    class: "fold event",
    testid: "event-row",
    dataset: { id: event.id, type: event.type },
  });
}

function about(data) {
  if (typeof data !== "object" || data === null) return "";
  return oneLine(data.message ?? data.reason ?? data.error ?? data.toolName ?? data.method ?? "", 160);
}
