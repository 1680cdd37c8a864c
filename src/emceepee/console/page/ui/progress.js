// The progress of a call, as a bar and as text.

import { singleLine } from "../lib/display-text.js";
import { bdi, h, setText } from "./dom.js";

export class ProgressView {
  /**
   * @param {string} name
   * @param {string} [testid]
   */
  constructor(name, testid) {
    this.bar = h("progress", { class: "progress", "aria-label": `Progress of ${name}` });
    this.text = bdi("", { class: "muted small" });
    this.element = h("div", { class: "progress-view", testid }, this.bar, this.text);
  }

  /**
   * @param {Wire.Progress | null | undefined} progress
   * @param {string} [fallbackText]
   */
  update(progress, fallbackText = "") {
    const { progress: done, total } = progress ?? {};
    if (isNumber(done) && isNumber(total) && total > 0) {
      this.bar.max = total;
      this.bar.value = Math.min(done, total);
    } else this.bar.removeAttribute("value");
    setText(this.text, progressText(progress) || fallbackText);
  }
}

/**
 * @param {unknown} value
 * @returns {value is number}
 */
const isNumber = (value) => Number.isFinite(value);

/** @param {Wire.Progress | null | undefined} progress */
export function progressText(progress) {
  if (!progress || !isNumber(progress.progress)) return "";
  const amount = isNumber(progress.total) ? `${progress.progress} of ${progress.total}` : String(progress.progress);
  return progress.message ? singleLine(progress.message, 80) : amount;
}
