// One request of the waterfall: its label, and its bars on the time axis.

import { bdi, h, setAttribute, setText } from "../../ui/dom.js";
import { duration, preciseTime } from "../../text/format.js";
import { icon } from "../../ui/icons.js";
import { sessionName, shortSessionName } from "../../state/session-names.js";
import { PHASES, TYPES, extent, phasesOf, statusName } from "../../state/request-phases.js";
import { oneLine } from "../../text/display-text.js";

const THINNEST = 3; // pixels: a quick request stays visible at any zoom
const LABEL_ROOM = 84; // pixels a duration needs beside its bar
const ENDINGS = new Set(["success", "error", "cancelled"]);
const BEYOND = 20; // pixels drawn outside of the view; a longer bar would only cost

export class RowView {
  row = null;
  #segments = [];
  #shownStatus = null;

  constructor(store) {
    this.store = store;
    this.status = h("span", { class: "row-status" });
    this.name = bdi("", { class: "row-name" });
    this.server = bdi("", { class: "row-server" });
    this.session = h("span", { class: "chip row-session" });
    this.task = h("span", { class: "tag row-task" }, "task");
    this.bar = h("div", { class: "bar", "aria-hidden": "true", testid: "waterfall-bar", dataset: { kind: "request" } });
    this.caption = h("span", { class: "bar-caption", "aria-hidden": "true" });
    this.spoken = h("span", { class: "visually-hidden" });
    this.away = h("span", { class: "bar-away", "aria-hidden": "true", dataset: { action: "center" } });
    this.line = h("div", { class: "row-line", role: "gridcell" }, this.spoken, this.bar, this.caption, this.away);
    const names = h("span", { class: "row-names" }, this.name, this.server);
    const label = h("div", { class: "row-label", role: "gridcell" }, this.status, names, this.task, this.session);
    this.element = h("div", { class: "row", role: "row", testid: "waterfall-row", tabindex: "-1" }, label, this.line);
  }

  update(row, { showsSession, index, isActive, isSelected }) {
    setAttribute(this.element, "tabindex", isActive ? "0" : "-1");
    setAttribute(this.element, "aria-selected", String(isSelected));
    setAttribute(this.element, "aria-rowindex", String(index + 2));
    this.session.hidden = !showsSession;
    if (showsSession) {
      setText(this.session, shortSessionName(this.store, row.session));
      setAttribute(this.session, "title", `Session: ${sessionName(this.store, row.session)}`);
    }
    if (row === this.row) return;
    this.row = row;
    Object.assign(this.element.dataset, { id: row.id, status: row.status, type: row.type });
    this.#showStatus(row);
    setText(this.name, oneLine(row.name ?? ""));
    setAttribute(this.name, "title", row.name ?? "");
    setText(this.server, row.server ? oneLine(row.server, 60) : (TYPES[row.type] ?? row.type));
    this.task.hidden = !row.taskId;
    const summary = this.#summary(row);
    setAttribute(this.bar, "title", summary);
    setText(this.spoken, summary);
    this.#makeSegments(row);
  }

  #showStatus(row) {
    setAttribute(this.status, "title", statusName(row));
    if (this.#shownStatus === row.status) return;
    this.#shownStatus = row.status;
    this.status.replaceChildren(icon(ENDINGS.has(row.status) ? row.status : "pending", 14));
  }

  #summary(row) {
    const took = Number.isFinite(row.endedAt) ? duration(row.endedAt - row.startedAt) : "still running";
    const parts = phasesOf(row, row.endedAt ?? row.startedAt).map(({ kind, from, to, isOpen }) =>
      isOpen && row.status === "pending" ? `${PHASES[kind]} …` : `${PHASES[kind]} ${duration(to - from)}`,
    );
    const error = row.error ? `\n${oneLine(row.error, 300)}` : "";
    return `${statusName(row)}, ${took}, began ${preciseTime(row.startedAt)}\n${parts.join(", ")}${error}`;
  }

  #makeSegments(row) {
    const kinds = phasesOf(row, row.startedAt).map(({ kind }) => kind);
    while (this.#segments.length > kinds.length) this.#segments.pop().remove();
    kinds.forEach((kind, index) => {
      let segment = this.#segments[index];
      if (!segment) {
        segment = h("div", { class: "segment", testid: "waterfall-bar" });
        this.#segments.push(segment);
        this.bar.append(segment);
      }
      segment.dataset.kind = kind;
    });
  }

  /** Put the bars where they belong at this moment. */
  layout(window, width, now) {
    const [start, end] = extent(this.row, now);
    const bounded = (at) => Math.min(width + BEYOND, Math.max(-BEYOND, window.place(at, width)));
    const left = bounded(start);
    const right = Math.max(bounded(end), left + THINNEST);
    this.bar.style.transform = `translateX(${left.toFixed(1)}px)`;
    this.bar.style.width = `${(right - left).toFixed(1)}px`;
    // A bar that was widened to be seen at all keeps the proportions of its parts.
    const isWidened = right - left <= THINNEST;
    const inside = (at) =>
      isWidened ? (right - left) * ((at - start) / Math.max(1, end - start)) : bounded(at) - left;
    phasesOf(this.row, now).forEach((phase, index) => {
      const from = Math.min(Math.max(0, inside(phase.from)), right - left - 1);
      const to = Math.min(inside(phase.to), right - left);
      const segment = this.#segments[index];
      segment.style.transform = `translateX(${from.toFixed(1)}px)`;
      segment.style.width = `${Math.max(1, to - from).toFixed(1)}px`;
    });
    this.#caption(left, right, width, end - start);
    this.#pointAway(left, right, width, start);
  }

  #caption(left, right, width, took) {
    const progress = this.row.status === "pending" ? progressText(this.row.progress) : "";
    setText(this.caption, progress ? `${duration(took)} · ${progress}` : duration(took));
    const isBefore = right + LABEL_ROOM > width && left > LABEL_ROOM;
    this.caption.classList.toggle("inside", !isBefore && right + LABEL_ROOM > width);
    const x = isBefore ? left - 8 : Math.min(right + 8, width - 8);
    const shift = isBefore || right + LABEL_ROOM > width ? "-100%" : "0px";
    this.caption.style.transform = `translateX(calc(${x.toFixed(1)}px + ${shift}))`;
  }

  #pointAway(left, right, width, start) {
    const side = right <= THINNEST - BEYOND || right < 0 ? "left" : left > width ? "right" : "";
    this.line.dataset.away = side;
    if (side)
      setText(
        this.away,
        side === "left" ? `◂ ${preciseTime(start).slice(0, -4)}` : `${preciseTime(start).slice(0, -4)} ▸`,
      );
  }
}

export function progressText(progress) {
  if (!progress || !Number.isFinite(progress.progress)) return "";
  const amount = Number.isFinite(progress.total)
    ? `${progress.progress} of ${progress.total}`
    : String(progress.progress);
  return progress.message ? oneLine(progress.message, 80) : amount;
}
