// Questions of servers to the person, and the answers in flight.

import { notificationButton } from "../../shell/question-alerts.js";
import { emptyState, viewHeader } from "../../ui/controls.js";
import { h, reconcile } from "../../ui/dom.js";
import { announce, showToast } from "../../ui/toast.js";
import { QuestionCard } from "./question-card.js";

/**
 * @import { QuestionEntry, Store } from "../../state/store.js"
 */

const CLOSED_CARD_MS = 30_000;
/** @type {{ [reason: string]: string }} */
const REASONS = {
  timeout: "The time to answer is over.",
  disconnected: "The server was lost, so nobody waits for the answer any more.",
  withdrawn: "The server withdrew its question.",
  cancelled: "The call that asked was cancelled.",
  answered: "Someone else answered.",
};
/** @param {QuestionEntry} entry */
const keyOf = (entry) => `${entry.session}/${entry.question.requestId}`;

export class QuestionsView {
  /** @type {Map<string, QuestionCard>} */
  #cards = new Map();
  /**
   * Questions that were answered here. The feed may still report them, because it can lag behind the reply to the
   * answer.
   * @type {Set<string>}
   */
  #answered = new Set();
  /**
   * The reasons why questions were closed, by id.
   * @type {Map<string, string>}
   */
  #reasons = new Map();
  /** @type {Wire.SessionEvent[] | null} */
  #readEvents = null;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.cards = h("div", { class: "questions" });
    this.empty = emptyState(
      "Nothing to answer.",
      h("p", null, "When a server asks for something, its form appears here."),
    );
    this.element = h(
      "section",
      { class: "view page questions-view", "aria-label": "Questions" },
      viewHeader("Questions", notificationButton()),
      this.empty,
      this.cards,
    );
  }

  show() {
    this.update();
  }

  /** Also runs while another view is shown, because a card must detect that its question is gone. */
  update() {
    this.#collectReasons();
    const open = this.store.questions();
    const openKeys = new Set(open.map(keyOf));
    for (const entry of open) this.#addCard(entry);
    for (const [key, card] of this.#cards) {
      if (!openKeys.has(key) && this.store.isReady) this.#closeCard(key, card);
      else if (openKeys.has(key)) card.reopen();
    }
    this.#render();
  }

  /** @param {QuestionEntry} entry */
  #addCard(entry) {
    const key = keyOf(entry);
    if (this.#cards.has(key) || this.#answered.has(key)) return;
    const card = new QuestionCard(this.store, entry, {
      onAnswered: (text) => this.#onAnswered(key, text),
      onDismiss: () => this.#remove(key),
    });
    this.#cards.set(key, card);
    announce(`New question from ${entry.question.server}`);
  }

  /**
   * @param {string} key
   * @param {QuestionCard} card
   */
  #closeCard(key, card) {
    if (card.isAnswering) return;
    const requestId = card.entry.question.requestId;
    const text = REASONS[this.#reasons.get(requestId) ?? ""];
    if (text || !card.isClosed) card.close(text ?? "It was answered elsewhere, or is no longer wanted.");
    if (!card.isDirty) card.removeTimer ??= setTimeout(() => this.#remove(key), CLOSED_CARD_MS);
  }

  /**
   * @param {string} key
   * @param {string} text
   */
  #onAnswered(key, text) {
    showToast(text);
    this.#answered.add(key);
    this.#remove(key);
  }

  /** @param {string} key */
  #remove(key) {
    this.#cards.delete(key);
    this.#render();
  }

  #collectReasons() {
    const events = this.store.events;
    if (events === this.#readEvents) return;
    this.#readEvents = events;
    for (const event of events.slice(-200)) {
      if (!/^(elicitation|sampling)_expired$/.test(event.type)) continue;
      const id = event.data?.requestId ?? event.data?.request_id;
      if (id) this.#reasons.set(id, event.data.reason);
    }
  }

  #render() {
    const cards = [...this.#cards.entries()];
    this.empty.hidden = cards.length > 0 || !this.store.isReady;
    reconcile(
      this.cards,
      cards,
      ([key]) => key,
      ([, card]) => card,
    );
  }

  tick() {
    for (const card of this.#cards.values()) card.tick();
  }
}
