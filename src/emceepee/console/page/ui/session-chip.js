// A session's name in a chip.

import { sessionName } from "../state/session-names.js";
import { bdi, h } from "./dom.js";

/**
 * @param {import("../state/store.js").Store} store
 * @param {string} id
 */
export function sessionChip(store, id) {
  return h("span", { class: "chip", title: `Session ${id}` }, bdi(sessionName(store, id)));
}
