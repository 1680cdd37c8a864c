// The ticks of the time axis, and the grid lines below them.

import { h, reconcile } from "../../ui/dom.js";
import { tickLabel, ticks } from "./time-scale.js";

/**
 * @import { Tick, TimeScale } from "./time-scale.js"
 */

export class TimeAxis {
  constructor() {
    this.axis = h("div", { class: "axis", role: "columnheader", "aria-label": "Time" });
    this.gridlines = h("div", { class: "gridlines", "aria-hidden": "true" });
    const label = h("div", { class: "grid-header-label", role: "columnheader" }, "Request");
    const head = h("div", { class: "grid-header", role: "row", "aria-rowindex": "1" }, label, this.axis);
    this.head = h("div", { role: "rowgroup", class: "grid-header-group" }, head);
  }

  get width() {
    return this.axis.clientWidth;
  }

  get left() {
    return this.axis.getBoundingClientRect().left;
  }

  /** @param {TimeScale} scale */
  render(scale) {
    const found = ticks(scale, this.width);
    reconcile(this.axis, found, keyOf, (tick) => positionedTick(h("span", { class: "tick" }, tickLabel(tick))));
    reconcile(this.gridlines, found, keyOf, () => positionedTick(h("i", { class: "gridline" })));
  }
}

/** @param {Tick} tick */
const keyOf = (tick) => `${tick.step}/${tick.at}`;

/**
 * @param {HTMLElement} element
 * @returns {import("../../ui/dom.js").Part}
 */
function positionedTick(element) {
  const update = (/** @type {Tick} */ { x }) => {
    element.style.transform = `translateX(${x.toFixed(1)}px)`;
  };
  return { element, update };
}
