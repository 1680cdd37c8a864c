// One metric over time: its current value and a small plot of its history.

import { formatTime } from "../../lib/format.js";
import { roundUp, stepPaths } from "../../lib/plot-path.js";
import { h, setAttribute, setText, svgElement } from "../../ui/dom.js";

/**
 * @import { Point } from "../../lib/plot-path.js"
 * @typedef {{ from: number, to: number, stepMs: number }} Window
 */

const WIDTH = 360;
const HEIGHT = 72;

export class PlotCard {
  /**
   * @param {string} name
   * @param {{ title: string, tone?: string, format: (value: number) => string, least?: number }} settings
   *   `least`: the scale goes at least so far.
   */
  constructor(name, { title, tone = "", format, least = 1 }) {
    this.format = format;
    this.least = least;
    this.title = title;
    this.value = h("strong", { class: "plot-value" }, "–");
    this.note = h("span", { class: "muted small" });
    this.top = h("span", { class: "plot-top" });
    this.area = svgElement("path", { class: "plot-area" });
    this.line = svgElement("path", { class: "plot-line" });
    this.plot = svgElement(
      "svg",
      { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      this.area,
      this.line,
    );
    this.began = h("span");
    this.ended = h("span");
    this.element = h(
      "article",
      { class: `card plot-card ${tone}`, testid: "plot", dataset: { name } },
      h("header", { class: "plot-head" }, h("h2", null, title), this.value, this.note),
      h("div", { class: "plot-box" }, this.top, this.plot),
      h("div", { class: "plot-times muted", "aria-hidden": "true" }, this.began, this.ended),
    );
  }

  /**
   * @param {Point[]} points
   * @param {Window} window
   * @param {{ now: string, note: string }} words
   */
  update(points, { from, to, stepMs }, { now, note }) {
    const known = points.filter((point) => point.value !== null && point.at > from);
    const highest = known.reduce((most, { value }) => Math.max(most, value ?? 0), 0);
    const max = roundUp(Math.max(highest, this.least));
    const { area, line } = stepPaths(points, { from, to, max, width: WIDTH, height: HEIGHT, stepMs });
    setAttribute(this.area, "d", area);
    setAttribute(this.line, "d", line);
    setText(this.value, now);
    setText(this.note, note);
    setText(this.top, this.format(max));
    setText(this.began, formatTime(from));
    setText(this.ended, formatTime(to));
    const peak = known.find(({ value }) => value === highest);
    const told = peak ? `highest ${this.format(highest)} at ${formatTime(peak.at)}` : "nothing yet";
    setAttribute(this.plot, "aria-label", `${this.title} since ${formatTime(from)}: ${told}`);
  }
}
