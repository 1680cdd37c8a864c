// What servers ask the person, and the answers on their way.

import { announce, notice } from "../../ui/toast.js";
import { emptyState, viewHead } from "../../ui/controls.js";
import { h, reconcile } from "../../ui/dom.js";
import { notifyButton } from "../../shell/question-alerts.js";
import { QuestionCard } from "./question-card.js";

const GONE_MS = 30_000;
const REASONS = {
  timeout: "The time to answer is over.",
  disconnected: "The server was lost, so nobody waits for the answer any more.",
  withdrawn: "The server withdrew its question.",
  cancelled: "The call that asked was cancelled.",
  answered: "Someone else answered.",
};
const keyOf = (entry) => `${entry.session}/${entry.question.requestId}`;

export class Questions {
  #cards = new Map();
  #reasons = new Map();
  #readEvents = null;

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
      viewHead("Questions", notifyButton()),
      this.empty,
      this.cards,
    );
  }

  show() {
    this.update();
  }

  /** Runs also while another view is shown: a card must know that its question went away. */
  update() {
    this.#noteReasons();
    const open = this.store.questions();
    const openKeys = new Set(open.map(keyOf));
    for (const entry of open) this.#meet(entry);
    for (const [key, card] of this.#cards) {
      if (!openKeys.has(key) && this.store.isReady) this.#lose(key, card);
      else if (openKeys.has(key)) card.isBack();
    }
    this.#render();
  }

  #meet(entry) {
    const key = keyOf(entry);
    const known = this.#cards.get(key);
    if (known) return;
    const card = new QuestionCard(this.store, entry, {
      onAnswered: (words) => this.#answered(key, words),
      onDismiss: () => this.#remove(key),
    });
    this.#cards.set(key, card);
    announce(`New question from ${entry.question.server}`);
  }

  #lose(key, card) {
    if (card.isAnswering) return;
    const requestId = card.entry.question.requestId;
    const words = REASONS[this.#reasons.get(requestId)];
    if (words || !card.isGone) card.setGone(words ?? "It was answered elsewhere, or is no longer wanted.");
    if (!card.isDirty) card.leaveTimer ??= setTimeout(() => this.#remove(key), GONE_MS);
  }

  #answered(key, words) {
    notice(words);
    this.#remove(key);
  }

  #remove(key) {
    this.#cards.delete(key);
    this.#render();
  }

  #noteReasons() {
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
