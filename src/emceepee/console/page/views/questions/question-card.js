// One question: who asks, what, until when, and the form to answer it.

import { postJson } from "../../net/console-api.js";
import { now } from "../../state/server-clock.js";
import { bdi, h, nameOf, setAttribute, setText } from "../../ui/dom.js";
import { ElicitationBody } from "./elicitation-form.js";
import { millis, roughly } from "../../text/format.js";
import { longText } from "../../ui/expandable-text.js";
import { sessionChip } from "../../state/session-names.js";
import { SamplingBody } from "./sampling-form.js";

const MOST_MESSAGE = 2000;
const SOON_MS = 30_000;

export class QuestionCard {
  isAnswering = false;
  isDirty = false;
  #isGone = false;

  constructor(store, entry, { onAnswered, onDismiss }) {
    this.entry = entry;
    this.onAnswered = onAnswered;
    this.onDismiss = onDismiss;
    const { question, session } = entry;
    this.deadline = h("span", { class: "deadline" });
    this.error = h("div", { class: "error-text", testid: "question-error", role: "alert", hidden: true });
    this.goneWords = h("span", null);
    const dismiss = h("button", { type: "button", class: "button small", onclick: () => this.onDismiss() }, "Dismiss");
    this.gone = h(
      "p",
      { class: "gone", testid: "question-gone", role: "status", hidden: true },
      this.goneWords,
      dismiss,
    );
    this.body = question.kind === "sampling" ? new SamplingBody(question) : new ElicitationBody(question);
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
      this.#send(this.body.actions.find(({ kind }) => kind === "primary").run);
    });
    form.addEventListener("input", () => {
      this.isDirty = true;
    });
    this.form = form;
    const asks =
      question.kind === "sampling" ? "asks a model" : question.mode === "url" ? "asks you to open a link" : "asks you";
    const heading = h("h2", null, nameOf(question.server ?? "A server"), h("span", { class: "muted" }, ` ${asks}`));
    this.element = h(
      "article",
      { class: "card question", testid: "question", dataset: { id: question.requestId, kind: question.kind } },
      h("header", { class: "card-head" }, heading, sessionChip(store, session), this.deadline),
      question.message && h("p", { class: "message" }, longText(question.message, MOST_MESSAGE)),
      this.gone,
      form,
    );
    this.tick();
  }

  get isGone() {
    return this.#isGone;
  }

  tick() {
    const left = millis(this.entry.question.expiresAt) - now();
    if (!Number.isFinite(left) || this.#isGone) {
      setText(this.deadline, "");
      return;
    }
    setText(this.deadline, left > 0 ? `${roughly(left)} left` : "Time is over");
    setAttribute(this.deadline, "data-soon", left < SOON_MS);
  }

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
      this.#refused(error);
    }
  }

  #refused(error) {
    if (error.status === 404) {
      this.setGone("It is too late: this question is no longer open. Someone else may have answered.");
      return;
    }
    this.#setDisabled(false);
    const problems = Array.isArray(error.details?.problems) ? error.details.problems : [];
    this.#showError(error.message, this.body.showProblems?.(problems) ?? problems);
  }

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

  #setDisabled(isDisabled) {
    this.body.setDisabled(isDisabled);
    for (const button of this.buttons) button.disabled = isDisabled;
  }

  /** The reason may come a moment after the question went. */
  setGone(words) {
    setText(this.goneWords, words);
    if (this.#isGone) return;
    this.#isGone = true;
    this.element.classList.add("is-gone");
    this.#setDisabled(true);
    this.gone.hidden = false;
    this.tick();
  }

  /** The feed names it again: it was only out of sight. */
  isBack() {
    if (!this.#isGone || this.isAnswering) return;
    this.#isGone = false;
    clearTimeout(this.leaveTimer);
    this.leaveTimer = undefined;
    this.element.classList.remove("is-gone");
    this.gone.hidden = true;
    this.#setDisabled(false);
  }
}
