// Notifies the person of a waiting question: title, icon, and, if permitted, the system's notifications.

import { revealInvisible, singleLine } from "../lib/display-text.js";
import { button } from "../ui/controls.js";
import { byId } from "../ui/dom.js";

/**
 * @import { Store } from "../state/store.js"
 */

const ICON_SIZE = 32;

export class QuestionAlerts {
  /** @type {Set<string>} */
  #notified = new Set();
  #openCount = 0;
  #link = /** @type {HTMLLinkElement} */ (byId("favicon"));
  #plainIcon = this.#link.href;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
  }

  /**
   * `viewTitle` is the title without the count.
   * @param {string} viewTitle
   */
  update(viewTitle) {
    const open = this.store.questions();
    const prefix = open.length > 0 ? `(${open.length}) ` : "";
    const title = `${prefix}${viewTitle} · emceepee`;
    if (document.title !== title) document.title = title;
    if (open.length > 0 !== this.#openCount > 0) this.#setBadge(open.length > 0);
    this.#openCount = open.length;
    for (const { question } of open) {
      if (!this.#notified.has(question.requestId)) showNotification(question);
      this.#notified.add(question.requestId);
    }
  }

  /** @param {boolean} isWaiting */
  #setBadge(isWaiting) {
    if (!isWaiting) {
      this.#link.href = this.#plainIcon;
      return;
    }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = ICON_SIZE;
      const context = canvas.getContext("2d");
      if (!context) return;
      context.drawImage(image, 0, 0, ICON_SIZE, ICON_SIZE);
      context.beginPath();
      context.arc(ICON_SIZE - 8, 8, 7, 0, 2 * Math.PI);
      context.fillStyle = "#e5484d";
      context.fill();
      if (this.#openCount > 0) this.#link.href = canvas.toDataURL();
    };
    image.src = this.#plainIcon;
  }
}

/** @param {Wire.Question} question */
function showNotification(question) {
  if (!("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
  try {
    const body = revealInvisible(singleLine(question.message ?? "Asks a model for a completion", 160));
    const shown = new Notification(`${revealInvisible(singleLine(question.server ?? "A server", 60))} asks`, {
      body,
      tag: question.requestId,
    });
    shown.onclick = () => {
      window.focus();
      location.hash = "#questions";
      shown.close();
    };
  } catch {
    // Some phones have the interface but do not allow notifications from pages.
  }
}

/** The permission is requested only when this button is pressed. */
export function notificationButton() {
  if (!("Notification" in window) || Notification.permission !== "default") return null;
  const element = button("Notify me", {
    class: "button small",
    title: "Show a system notification when a question comes",
  });
  element.addEventListener("click", async () => {
    await Notification.requestPermission();
    element.remove();
  });
  return element;
}
