// Records the messages between emceepee and a server, and saves them as a file for `emceepee replay`.

import { messageOf } from "../../lib/errors.js";
import { postJson } from "../../net/console-api.js";
import { h, setAttribute, setText } from "../../ui/dom.js";
import { showToast } from "../../ui/toast.js";

const REVOKE_AFTER_MS = 60_000;
const LONGEST_NAME = 60;

export class RecordButton {
  #isRecording = false;

  /**
   * @param {string} server
   * @param {string} sessionId
   */
  constructor(server, sessionId) {
    this.server = server;
    this.sessionId = sessionId;
    this.element = h("button", { type: "button", class: "button small", onclick: () => this.#press() }, "Record");
  }

  /**
   * @param {Wire.Server} server
   * @param {string} session
   */
  update(server, session) {
    this.#isRecording = server.recording === true;
    setText(this.element, this.#isRecording ? "Stop and save" : "Record");
    const title = this.#isRecording
      ? "End the recording and save it as a file"
      : "Reconnect, and record all messages until you save them as a file";
    setAttribute(this.element, "title", title);
    setAttribute(this.element, "aria-description", `in ${session}`);
  }

  async #press() {
    const target = { session: this.sessionId, server: this.server };
    this.element.disabled = true;
    try {
      if (this.#isRecording) {
        const { recording } = await postJson("/console/end-recording", target);
        saveFile(`${fileName(this.server)}.jsonl`, String(recording));
      } else {
        await postJson("/console/record", target);
      }
    } catch (error) {
      showToast(messageOf(error), { kind: "error" });
    }
    this.element.disabled = false;
  }
}

/**
 * Letters and digits of any script, and a few symbols, because the name comes from a server's entry.
 * @param {string} server
 */
export function fileName(server) {
  const kept = server.replaceAll(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, LONGEST_NAME);
  return `recording-${kept}`;
}

/**
 * @param {string} name
 * @param {string} text
 */
function saveFile(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  const link = h("a", { download: name });
  link.href = address; // which is the page's own
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), REVOKE_AFTER_MS);
}
