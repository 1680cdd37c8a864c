// An overview: figures of the last hour, slow requests, failures, and open questions.

import { messageOf } from "../../lib/errors.js";
import { formatDuration, pluralize } from "../../lib/format.js";
import { asArray } from "../../lib/safe-json.js";
import { getJson } from "../../net/console-api.js";
import { serverNow } from "../../state/server-clock.js";
import { viewHeader } from "../../ui/controls.js";
import { h, setText } from "../../ui/dom.js";
import { formatBytes, sumUp } from "./figures.js";
import { PlotCard } from "./plot-card.js";
import { RequestList } from "./request-list.js";
import { WaitingList } from "./waiting-list.js";

/**
 * @import { Store, Topics } from "../../state/store.js"
 */

const ASK_EVERY_MS = 3_000; // an answer includes the time since the last sample
const SHORTEST_MS = 600_000; // the minimum range of a plot
const LONGEST_MS = 3_600_000;
const SHOWN_REQUESTS = 6;

export class OverviewView {
  /** @type {Wire.Overview} */
  #overview = { sampleMs: 10_000, samples: [] };
  #askedAt = -Infinity;
  #isAsking = false;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    const count = (/** @type {number} */ value) => value.toLocaleString("en");
    this.plots = {
      requests: new PlotCard("requests", { title: "Requests", format: count, least: 5 }),
      errors: new PlotCard("errors", { title: "Errors", tone: "bad", format: count, least: 5 }),
      slowest: new PlotCard("slowest", { title: "Slowest", format: formatDuration, least: 100 }),
      waiting: new PlotCard("waiting", { title: "Waiting for an answer", tone: "waiting", format: count, least: 2 }),
      memory: new PlotCard("memory", { title: "Memory", tone: "quiet", format: formatBytes, least: 50e6 }),
    };
    this.waiting = new WaitingList(store);
    this.slow = new RequestList(store, {
      title: "Slowest requests",
      empty: "No request has ended yet.",
      testid: "slow",
    });
    this.failed = new RequestList(store, {
      title: "Latest errors",
      empty: "No request failed.",
      testid: "failed",
      showsErrors: true,
    });
    this.problem = h("p", { class: "error-text", role: "status", hidden: true });
    this.element = h(
      "section",
      { class: "view page overview", "aria-label": "Overview" },
      viewHeader("Overview"),
      this.problem,
      this.waiting.element,
      h(
        "div",
        { class: "plots" },
        Object.values(this.plots).map(({ element }) => element),
      ),
      h("div", { class: "overview-lists" }, this.slow.element, this.failed.element),
    );
  }

  show() {
    this.#ask();
    this.update(new Set(["rows", "sessions"]));
  }

  /** @param {Topics} topics */
  update(topics) {
    if (topics.has("sessions")) this.waiting.update();
    if (topics.has("rows") || topics.has("sessions")) this.#listRequests();
    this.#plot();
  }

  tick() {
    if (performance.now() - this.#askedAt >= ASK_EVERY_MS) this.#ask();
    this.#plot();
  }

  async #ask() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#askedAt = performance.now();
    try {
      this.#overview = await getJson("/console/overview", {});
      this.problem.hidden = true;
    } catch (error) {
      setText(this.problem, messageOf(error));
      this.problem.hidden = false;
    }
    this.#isAsking = false;
    this.#plot();
  }

  #listRequests() {
    const ended = this.store.rows.ordered.filter((row) => row.endedAt !== undefined);
    const took = (/** @type {Wire.RequestRow} */ row) => (row.endedAt ?? row.startedAt) - row.startedAt;
    this.slow.update(ended.toSorted((a, b) => took(b) - took(a)).slice(0, SHOWN_REQUESTS));
    this.failed.update(
      ended
        .filter((row) => row.status === "error")
        .slice(-SHOWN_REQUESTS)
        .reverse(),
    );
  }

  #plot() {
    const samples = asArray(this.#overview.samples);
    const stepMs = this.#overview.sampleMs;
    const to = Math.max(serverNow(), samples.at(-1)?.at ?? 0);
    const age = to - ((samples[0]?.at ?? to) - stepMs);
    const from = to - Math.min(Math.max(age, SHORTEST_MS), LONGEST_MS);
    const window = { from, to, stepMs };
    const all = sumUp(samples, from);
    const waiting = this.store.questions().length;
    const each = `per ${stepMs / 1000} s`;
    const { requests, errors, slowest, waiting: wait, memory } = this.plots;
    const points = (/** @type {keyof Wire.OverviewSample} */ key) =>
      samples.map((sample) => ({ at: sample.at, value: sample[key] }));
    requests.update(points("requests"), window, {
      now: all.requests.toLocaleString("en"),
      note: `in all, plotted ${each}`,
    });
    const share = all.requests > 0 ? `${((100 * all.errors) / all.requests).toFixed(1)} % of requests` : "";
    errors.update(points("errors"), window, { now: all.errors.toLocaleString("en"), note: share });
    slowest.update(points("slowestMs"), window, {
      now: all.slowestMs === null ? "–" : formatDuration(all.slowestMs),
      note: `the slowest ${each}`,
    });
    wait.update(points("waiting"), window, {
      now: String(waiting),
      note: waiting > 0 ? pluralize(waiting, "open question") : "nothing waits",
    });
    memory.element.hidden = all.memory === null;
    memory.update(points("memory"), window, {
      now: all.memory === null ? "–" : formatBytes(all.memory),
      note: "of the process",
    });
  }
}
