// One question: the server, the text, the deadline, and the form to answer it.

import { messageOf } from "../../lib/errors.js";
import { formatCoarse, toMillis } from "../../lib/format.js";
import { asArray } from "../../lib/safe-json.js";
import { ApiError, postJson } from "../../net/console-api.js";
import { serverNow } from "../../state/server-clock.js";
import { bdi, h, nameLabel, setAttribute, setText } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { sessionChip } from "../../ui/session-chip.js";
import { ElicitationForm } from "./elicitation-form.js";
import { SamplingForm } from "./sampling-form.js";

/**
 * @import { QuestionEntry, Store } from "../../state/store.js"
 */
/**
 * @typedef {{ path: string, body: object, done: string }} Post
 * @typedef {{ label: string, kind?: string, run: () => Post | null }} Action
 */

const MAX_MESSAGE = 2000;
const URGENT_MS = 30_000;

export class QuestionCard {
  isAnswering = false;
  isDirty = false;
  #isClosed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  removeTimer;

  /**
   * @param {Store} store
   * @param {QuestionEntry} entry
   * @param {{ onAnswered: (text: string) => void, onDismiss: () => void }} listeners
   */
  constructor(store, entry, { onAnswered, onDismiss }) {
    this.entry = entry;
    this.onAnswered = onAnswered;
    this.onDismiss = onDismiss;
    const { question, session } = entry;
    this.deadline = h("span", { class: "deadline" });
    this.error = h("div", { class: "error-text", testid: "question-error", role: "alert", hidden: true });
    this.closedText = h("span", null);
    const dismiss = h("button", { type: "button", class: "button small", onclick: () => this.onDismiss() }, "Dismiss");
    this.closedBanner = h(
      "p",
      { class: "closed-banner", testid: "question-closed", role: "status", hidden: true },
      this.closedText,
      dismiss,
    );
    this.body = question.kind === "sampling" ? new SamplingForm(question) : new ElicitationForm(question);
    this.buttons = this.body.actions.map(({ label, kind, run }) =>
      kind === "primary"
        ? h("button", { type: "submit", class: "button primary" }, label)
        : h("button", { type: "button", class: `button ${kind ?? ""}`, onclick: () => this.#send(run) }, label),
    );
    const form = h(
      "form",
      { novalidate: true, class: "question-form" },
      this.body.element,
      this.error,
      h("div", { class: "actions" }, this.buttons),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const primary = this.body.actions.find(({ kind }) => kind === "primary");
      if (primary) this.#send(primary.run);
    });
    form.addEventListener("input", () => {
      this.isDirty = true;
    });
    this.form = form;
    const asks =
      question.kind === "sampling" ? "asks a model" : question.mode === "url" ? "asks you to open a link" : "asks you";
    const heading = h("h2", null, nameLabel(question.server ?? "A server"), h("span", { class: "muted" }, ` ${asks}`));
    this.element = h(
      "article",
      { class: "card question", testid: "question", dataset: { id: question.requestId, kind: question.kind } },
      h("header", { class: "card-head" }, heading, sessionChip(store, session), this.deadline),
      question.message && h("p", { class: "message" }, expandableText(question.message, MAX_MESSAGE)),
      this.closedBanner,
      form,
    );
    this.tick();
  }

  get isClosed() {
    return this.#isClosed;
  }

  tick() {
    const left = toMillis(this.entry.question.expiresAt) - serverNow();
    if (!Number.isFinite(left) || this.#isClosed) {
      setText(this.deadline, "");
      return;
    }
    setText(this.deadline, left > 0 ? `${formatCoarse(left)} left` : "Time is over");
    setAttribute(this.deadline, "data-urgent", left < URGENT_MS);
  }

  /** @param {() => Post | null} run */
  async #send(run) {
    const post = run();
    if (!post || this.isAnswering) return;
    const { question, session } = this.entry;
    this.isAnswering = true;
    this.#setDisabled(true);
    this.#showError(null);
    try {
      await postJson(post.path, { session, requestId: question.requestId, ...post.body });
      this.onAnswered(post.done);
    } catch (error) {
      this.isAnswering = false;
      this.#handleError(error);
    }
  }

  /** @param {unknown} error */
  #handleError(error) {
    if (error instanceof ApiError && error.status === 404) {
      this.close("It is too late: this question is no longer open. Someone else may have answered.");
      return;
    }
    this.#setDisabled(false);
    const problems = error instanceof ApiError ? asArray(error.details?.problems) : [];
    this.#showError(messageOf(error), this.body.showProblems(problems));
  }

  /**
   * @param {string | null} message
   * @param {Wire.Problem[]} [problems]
   */
  #showError(message, problems = []) {
    this.error.hidden = !message;
    this.error.replaceChildren();
    if (!message) return;
    this.error.append(h("p", null, bdi(message)));
    if (problems.length > 0)
      this.error.append(
        h(
          "ul",
          null,
          problems.map(({ field, message: text }) => h("li", null, bdi(field === null ? text : `${field}: ${text}`))),
        ),
      );
  }

  /** @param {boolean} isDisabled */
  #setDisabled(isDisabled) {
    this.body.setDisabled(isDisabled);
    for (const button of this.buttons) button.disabled = isDisabled;
  }

  /**
   * The reason can arrive after the question has left the feed.
   * @param {string} reason
   */
  close(reason) {
    setText(this.closedText, reason);
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.element.classList.add("is-closed");
    this.#setDisabled(true);
    this.closedBanner.hidden = false;
    this.tick();
  }

  /** The feed reports it again: it was only temporarily missing. */
  reopen() {
    if (!this.#isClosed || this.isAnswering) return;
    this.#isClosed = false;
    clearTimeout(this.removeTimer);
    this.removeTimer = undefined;
    this.element.classList.remove("is-closed");
    this.closedBanner.hidden = true;
    this.#setDisabled(false);
  }
}
