// A person's actions on a server: edit its settings, disable, enable, and remove it.

import { messageOf } from "../../lib/errors.js";
import { confirmAction } from "../../ui/dialog.js";
import { h } from "../../ui/dom.js";
import { showToast } from "../../ui/toast.js";
import { ServerForm } from "./server-form.js";

/**
 * @import { ServerAdmin } from "../../calls/server-admin.js"
 * @import { ServerGroup } from "./server-card.js"
 */

const IN_FILE = "It is in emceepee’s configuration file, and comes back when emceepee is started again.";
const FOR_GOOD = "It is disconnected in all of your sessions, and its settings are forgotten.";

export class ServerActions {
  /** @type {ServerGroup | null} */
  #group = null;
  /** @type {ServerForm | null} */
  #form = null;

  /**
   * @param {string} name
   * @param {ServerAdmin} admin
   */
  constructor(name, admin) {
    this.name = name;
    this.admin = admin;
    this.edit = this.#button("Edit", () => this.#openForm());
    this.toggle = this.#button("Disable", () => this.#setEnabled(Boolean(this.#group?.isDisabled)));
    this.remove = this.#button("Remove", () => this.#remove());
    this.origin = h("span", { class: "muted small" });
    this.formPlace = h("div", { class: "server-form-place", hidden: true });
    this.element = h(
      "div",
      { class: "server-actions" },
      h("div", { class: "actions" }, this.edit, this.toggle, this.remove, this.origin),
      this.formPlace,
    );
  }

  /** @param {ServerGroup} group */
  update(group) {
    this.#group = group;
    this.edit.hidden = this.toggle.hidden = group.isConfigured;
    this.toggle.textContent = group.isDisabled ? "Enable" : "Disable";
    this.remove.hidden = group.isConfigured && group.isDisabled;
    const origin = group.isDisabled ? "Disabled in the configuration file" : "From the configuration file";
    this.origin.textContent = group.isConfigured ? origin : "";
  }

  /**
   * @param {string} label
   * @param {() => Promise<void>} act
   */
  #button(label, act) {
    const button = h(
      "button",
      {
        type: "button",
        class: "button small",
        "aria-description": `server ${this.name}`,
        onclick: async () => {
          button.disabled = true;
          try {
            await act();
          } catch (error) {
            showToast(messageOf(error), { kind: "error" });
          }
          button.disabled = false;
        },
      },
      label,
    );
    return button;
  }

  async #openForm() {
    const session = this.#group?.session;
    if (!session || this.#form) return;
    const before = await this.admin.settings(session, this.name);
    this.#form = new ServerForm(this.admin, { before, onDone: () => this.#closeForm() });
    this.formPlace.replaceChildren(this.#form.element);
    this.formPlace.hidden = false;
    this.#form.focus();
  }

  #closeForm() {
    this.#form = null;
    this.formPlace.replaceChildren();
    this.formPlace.hidden = true;
    this.edit.focus();
  }

  /** @param {boolean} isEnabled */
  async #setEnabled(isEnabled) {
    const session = this.#group?.session;
    if (!session) return;
    await this.admin.setEnabled(session, this.name, isEnabled);
    showToast(isEnabled ? `${this.name} is enabled; it is connected when it is used.` : `${this.name} is disabled.`);
  }

  async #remove() {
    const text = this.#group?.isConfigured ? IN_FILE : FOR_GOOD;
    if (!(await confirmAction(`Remove ${this.name}?`, `Calls to it that are running fail. ${text}`, "Remove server")))
      return;
    await this.admin.remove(this.name);
    if (location.hash === `#servers/${encodeURIComponent(this.name)}`) location.hash = "#servers";
    showToast(`${this.name} was removed.`);
  }
}
