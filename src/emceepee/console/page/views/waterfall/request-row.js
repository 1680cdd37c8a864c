// One request of the waterfall: its label, and its bars on the time axis.

import { singleLine } from "../../lib/display-text.js";
import { formatDuration, formatPreciseTime } from "../../lib/format.js";
import { PHASE_LABELS, TYPE_LABELS, extent, phasesOf, statusLabel } from "../../state/request-phases.js";
import { sessionName, shortSessionName } from "../../state/session-names.js";
import { bdi, h, setAttribute, setText } from "../../ui/dom.js";
import { icon } from "../../ui/icons.js";
import { progressText } from "../../ui/progress.js";

/**
 * @import { Store } from "../../state/store.js"
 * @import { TimeScale } from "./time-scale.js"
 */
/**
 * @typedef {{ showsSession: boolean, index: number, isActive: boolean, isSelected: boolean }} RowState
 */

const MIN_BAR_PX = 3; // pixels: keeps a quick request visible at any zoom
const CAPTION_PX = 84; // pixels that a duration needs beside its bar
/** @type {(status: string) => import("../../ui/icons.js").IconName} */
const statusIcon = (status) =>
  status === "success" || status === "error" || status === "cancelled" ? status : "pending";
const OVERDRAW_PX = 20; // pixels drawn outside of the view; a longer bar would only take time

export class RequestRowView {
  /** @type {Wire.RequestRow | null} */
  row = null;
  /** @type {HTMLElement[]} */
  #segments = [];
  /** @type {string | null} */
  #shownStatus = null;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.status = h("span", { class: "row-status" });
    this.name = bdi("", { class: "row-name" });
    this.server = bdi("", { class: "row-server" });
    this.session = h("span", { class: "chip row-session" });
    this.task = h("span", { class: "tag row-task" }, "task");
    this.bar = h("div", { class: "bar", "aria-hidden": "true", testid: "waterfall-bar", dataset: { kind: "request" } });
    this.caption = h("span", { class: "bar-caption", "aria-hidden": "true" });
    this.description = h("span", { class: "visually-hidden" });
    this.offscreenHint = h("span", { class: "offscreen-hint", "aria-hidden": "true", dataset: { action: "center" } });
    this.track = h(
      "div",
      { class: "row-track", role: "gridcell" },
      this.description,
      this.bar,
      this.caption,
      this.offscreenHint,
    );
    const names = h("span", { class: "row-names" }, this.name, this.server);
    const label = h("div", { class: "row-label", role: "gridcell" }, this.status, names, this.task, this.session);
    this.element = h("div", { class: "row", role: "row", testid: "waterfall-row", tabindex: "-1" }, label, this.track);
  }

  /**
   * @param {Wire.RequestRow} row
   * @param {RowState} state
   */
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
    this.element.classList.toggle("is-nested", row.parent !== undefined); // a call of the script above
    this.#showStatus(row);
    setText(this.name, singleLine(row.name ?? ""));
    setAttribute(this.name, "title", row.name ?? "");
    setText(this.server, row.server ? singleLine(row.server, 60) : (TYPE_LABELS[row.type] ?? row.type));
    this.task.hidden = !row.taskId;
    const summary = this.#summary(row);
    setAttribute(this.bar, "title", summary);
    setText(this.description, summary);
    this.#makeSegments(row);
  }

  /** @param {Wire.RequestRow} row */
  #showStatus(row) {
    setAttribute(this.status, "title", statusLabel(row));
    if (this.#shownStatus === row.status) return;
    this.#shownStatus = row.status;
    this.status.replaceChildren(icon(statusIcon(row.status), 14));
  }

  /** @param {Wire.RequestRow} row */
  #summary(row) {
    const took = row.endedAt === undefined ? "still running" : formatDuration(row.endedAt - row.startedAt);
    const parts = phasesOf(row, row.endedAt ?? row.startedAt).map(({ kind, from, to, isOpen }) =>
      isOpen && row.status === "pending"
        ? `${PHASE_LABELS[kind]} …`
        : `${PHASE_LABELS[kind]} ${formatDuration(to - from)}`,
    );
    const error = row.error ? `\n${singleLine(row.error, 300)}` : "";
    const nested = row.parent === undefined ? "" : "Call of a script: ";
    return `${nested}${statusLabel(row)}, ${took}, began ${formatPreciseTime(row.startedAt)}\n${parts.join(", ")}${error}`;
  }

  /** @param {Wire.RequestRow} row */
  #makeSegments(row) {
    const kinds = phasesOf(row, row.startedAt).map(({ kind }) => kind);
    while (this.#segments.length > kinds.length) this.#segments.pop()?.remove();
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

  /**
   * Put the bars in their current place.
   * @param {TimeScale} scale
   * @param {number} width
   * @param {number} now
   */
  layout(scale, width, now) {
    const { row } = this;
    if (!row) return;
    const [start, end] = extent(row, now);
    const bounded = (/** @type {number} */ at) =>
      Math.min(width + OVERDRAW_PX, Math.max(-OVERDRAW_PX, scale.place(at, width)));
    const left = bounded(start);
    const right = Math.max(bounded(end), left + MIN_BAR_PX);
    this.bar.style.transform = `translateX(${left.toFixed(1)}px)`;
    this.bar.style.width = `${(right - left).toFixed(1)}px`;
    // A bar that was widened for visibility keeps the proportions of its parts.
    const isWidened = right - left <= MIN_BAR_PX;
    const inside = (/** @type {number} */ at) =>
      isWidened ? (right - left) * ((at - start) / Math.max(1, end - start)) : bounded(at) - left;
    phasesOf(row, now).forEach((phase, index) => {
      const from = Math.min(Math.max(0, inside(phase.from)), right - left - 1);
      const to = Math.min(inside(phase.to), right - left);
      const segment = this.#segments[index];
      segment.style.transform = `translateX(${from.toFixed(1)}px)`;
      segment.style.width = `${Math.max(1, to - from).toFixed(1)}px`;
    });
    this.#placeCaption(row, left, right, width, end - start);
    this.#showOffscreenHint(left, right, width, start);
  }

  /**
   * @param {Wire.RequestRow} row
   * @param {number} left
   * @param {number} right
   * @param {number} width
   * @param {number} took
   */
  #placeCaption(row, left, right, width, took) {
    const progress = row.status === "pending" ? progressText(row.progress) : "";
    setText(this.caption, progress ? `${formatDuration(took)} · ${progress}` : formatDuration(took));
    const isBefore = right + CAPTION_PX > width && left > CAPTION_PX;
    this.caption.classList.toggle("inside", !isBefore && right + CAPTION_PX > width);
    const x = isBefore ? left - 8 : Math.min(right + 8, width - 8);
    const shift = isBefore || right + CAPTION_PX > width ? "-100%" : "0px";
    this.caption.style.transform = `translateX(calc(${x.toFixed(1)}px + ${shift}))`;
  }

  /**
   * @param {number} left
   * @param {number} right
   * @param {number} width
   * @param {number} start
   */
  #showOffscreenHint(left, right, width, start) {
    const side = right <= MIN_BAR_PX - OVERDRAW_PX || right < 0 ? "left" : left > width ? "right" : "";
    this.track.dataset.offscreen = side;
    if (side)
      setText(
        this.offscreenHint,
        side === "left" ? `◂ ${formatPreciseTime(start).slice(0, -4)}` : `${formatPreciseTime(start).slice(0, -4)} ▸`,
      );
  }
}
