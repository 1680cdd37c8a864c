// Telling the person that a question waits: title, icon and, once allowed, the system's notifications.

import { button } from "../ui/controls.js";
import { visible } from "../text/display-text.js";
import { oneLine } from "../text/display-text.js";

const SIZE = 32;

export class Attention {
  #known = new Set();
  #shown = 0;
  #plainIcon = document.getElementById("favicon").href;

  constructor(store) {
    this.store = store;
  }

  /** `viewTitle` is what the title says besides the count. */
  update(viewTitle) {
    const open = this.store.questions();
    const prefix = open.length > 0 ? `(${open.length}) ` : "";
    const title = `${prefix}${viewTitle} · emceepee`;
    if (document.title !== title) document.title = title;
    if (open.length > 0 !== this.#shown > 0) this.#badge(open.length > 0);
    this.#shown = open.length;
    for (const { question } of open) {
      if (!this.#known.has(question.requestId)) notifySystem(question);
      this.#known.add(question.requestId);
    }
  }

  #badge(isWaiting) {
    const link = document.getElementById("favicon");
    if (!isWaiting) {
      link.href = this.#plainIcon;
      return;
    }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = SIZE;
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0, SIZE, SIZE);
      context.beginPath();
      context.arc(SIZE - 8, 8, 7, 0, 2 * Math.PI);
      context.fillStyle = "#e5484d";
      context.fill();
      if (this.#shown > 0) link.href = canvas.toDataURL();
    };
    image.src = this.#plainIcon;
  }
}

function notifySystem(question) {
  if (!("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
  try {
    const body = visible(oneLine(question.message ?? "Asks a model for a completion", 160));
    const shown = new Notification(`${visible(oneLine(question.server ?? "A server", 60))} asks`, {
      body,
      tag: question.requestId,
    });
    shown.onclick = () => {
      window.focus();
      location.hash = "#questions";
      shown.close();
    };
  } catch {
    // Some phones have the interface but no notifications from pages.
  }
}

/** Only a press of this button asks for the permission. */
export function notifyButton() {
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
