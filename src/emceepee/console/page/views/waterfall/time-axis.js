// The marks of the time axis, and the lines below them.

import { markLabel, marks } from "./time-scale.js";
import { h, reconcile } from "../../ui/dom.js";

export class AxisView {
  constructor() {
    this.axis = h("div", { class: "axis", role: "columnheader", "aria-label": "Time" });
    this.lines = h("div", { class: "gridlines", "aria-hidden": "true" });
    const label = h("div", { class: "head-label", role: "columnheader" }, "Request");
    const head = h("div", { class: "head", role: "row", "aria-rowindex": "1" }, label, this.axis);
    this.head = h("div", { role: "rowgroup", class: "head-group" }, head);
  }

  get width() {
    return this.axis.clientWidth;
  }

  get left() {
    return this.axis.getBoundingClientRect().left;
  }

  render(window) {
    const found = marks(window, this.width);
    reconcile(this.axis, found, keyOf, (mark) => placed(h("span", { class: "mark" }, markLabel(mark))));
    reconcile(this.lines, found, keyOf, () => placed(h("i", { class: "gridline" })));
  }
}

const keyOf = (mark) => `${mark.step}/${mark.at}`;

function placed(element) {
  const update = ({ x }) => {
    element.style.transform = `translateX(${x.toFixed(1)}px)`;
  };
  return { element, update };
}
