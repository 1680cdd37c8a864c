// A server's request for a completion, answered by a person instead of a model.

import { asArray } from "../../lib/safe-json.js";
import { bdi, h } from "../../ui/dom.js";
import { expandableText } from "../../ui/expandable-text.js";
import { jsonBlock } from "../../ui/json-view.js";

/**
 * @import { Action, Post } from "./question-card.js"
 */

const MAX_TEXT = 4000;
let sampleCount = 0;

export class SamplingForm {
  /** @param {Wire.Question} question */
  constructor(question) {
    sampleCount += 1;
    const id = `answer${sampleCount}`;
    this.answer = h("textarea", { id, name: "answer", class: "input tall", rows: "4", required: true });
    this.problem = h("p", { class: "field-problem", id: `${id}-problem`, hidden: true }, "Write an answer, or refuse.");
    this.answer.setAttribute("aria-describedby", `${id}-problem`);
    this.answer.addEventListener("input", () => this.#showProblem(false));
    const prompt = question.systemPrompt;
    this.element = h(
      "div",
      { class: "fields" },
      typeof prompt === "string" &&
        prompt !== "" &&
        h(
          "div",
          { class: "turn system" },
          h("span", { class: "role" }, "System prompt"),
          h("p", null, expandableText(prompt, MAX_TEXT)),
        ),
      asArray(question.messages).map(messageElement),
      parameterSummary(question),
      h(
        "div",
        { class: "field" },
        h("div", { class: "field-head" }, h("label", { for: id }, "Answer")),
        this.answer,
        this.problem,
      ),
    );
    /** @type {Action[]} */
    this.actions = [
      { label: "Send answer", kind: "primary", run: () => this.#complete() },
      { label: "Refuse", run: () => ({ path: "/console/refuse", body: {}, done: "Refused." }) },
    ];
  }

  /** @returns {Post | null} */
  #complete() {
    const text = this.answer.value;
    this.#showProblem(text.trim() === "");
    if (text.trim() === "") {
      this.answer.focus();
      return null;
    }
    return { path: "/console/complete", body: { text }, done: "Your answer was sent." };
  }

  /** @param {boolean} isMissing */
  #showProblem(isMissing) {
    this.problem.hidden = !isMissing;
    if (isMissing) this.answer.setAttribute("aria-invalid", "true");
    else this.answer.removeAttribute("aria-invalid");
  }

  /**
   * It has no fields that could show them.
   * @param {Wire.Problem[]} problems
   */
  showProblems(problems) {
    return problems;
  }

  /** @param {boolean} isDisabled */
  setDisabled(isDisabled) {
    this.answer.disabled = isDisabled;
  }
}

/** @param {any} message */
function messageElement(message) {
  const role = typeof message?.role === "string" ? message.role : "?";
  const blocks = Array.isArray(message?.content) ? message.content : [message?.content];
  return h(
    "div",
    { class: "turn", dataset: { role } },
    h("span", { class: "role" }, bdi(role)),
    blocks.map(contentElement),
  );
}

/** @param {any} content */
function contentElement(content) {
  if (content?.type === "text") return h("p", null, expandableText(String(content.text ?? ""), MAX_TEXT));
  return jsonBlock(content, "Content");
}

/** @param {Wire.Question} question */
function parameterSummary(question) {
  const hints = asArray(question.modelPreferences?.hints)
    .map((/** @type {any} */ hint) => hint?.name)
    .filter(Boolean);
  const priorities = ["intelligence", "speed", "cost"]
    .filter((name) => Number.isFinite(question.modelPreferences?.[`${name}Priority`]))
    .map((name) => `${name} ${question.modelPreferences?.[`${name}Priority`]}`);
  const parts = [
    hints.length > 0 && `Wished model: ${hints.join(", ")}`,
    priorities.length > 0 && `Priorities: ${priorities.join(", ")}`,
    Number.isFinite(question.maxTokens) && `At most ${question.maxTokens} tokens`,
    Number.isFinite(question.temperature) && `Temperature ${question.temperature}`,
    asArray(question.stopSequences).length > 0 && `Stops at ${JSON.stringify(question.stopSequences)}`,
    asArray(question.tools).length > 0 && `Offers ${asArray(question.tools).length} tools`,
  ].filter(Boolean);
  return parts.length > 0 && h("p", { class: "muted small" }, bdi(parts.join(" · ")));
}
