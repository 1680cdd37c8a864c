// How sessions are called in front of a person.

import { bdi, h } from "../ui/dom.js";
import { oneLine } from "../text/display-text.js";

const CONSOLE = /^emceepee-console\s+(\S+)$/;
let ownNonce = null;

export function setOwnNonce(nonce) {
  ownNonce = nonce;
}

export function sessionName(store, id) {
  const label = store.labelOf(id);
  const page = CONSOLE.exec(label ?? "");
  if (page) return page[1] === ownNonce ? "This page" : `Console page ${oneLine(page[1], 8)}`;
  return label ? oneLine(label, 60) : `Session ${shortId(id)}`;
}

/** As short as it can be told apart: without the version, and with the end of the id where two are called the same. */
export function shortSessionName(store, id) {
  if (shortNames.store !== store || shortNames.revision !== store.sessionsRevision) shortNames = countedNames(store);
  const short = withoutVersion(sessionName(store, id));
  const others = (shortNames.counts.get(short) ?? 0) - (store.sessions.has(id) ? 1 : 0);
  return others > 0 ? `${short} ${String(id).slice(-3)}` : short;
}

// Counted once for all rows: with many sessions, to compare each with each would take longer than to draw them.
let shortNames = {};

function countedNames(store) {
  const counts = new Map();
  for (const id of store.sessions.keys()) {
    const short = withoutVersion(sessionName(store, id));
    counts.set(short, (counts.get(short) ?? 0) + 1);
  }
  return { store, revision: store.sessionsRevision, counts };
}

const withoutVersion = (name) => name.replace(/\s+v?\d[\w.+-]*$/, "");

/** The end of an id: ULIDs of one minute begin alike. */
export const shortId = (id) => (String(id).length > 8 ? `…${String(id).slice(-6)}` : String(id));

export const isOwnSession = (session) => CONSOLE.exec(session?.label ?? "")?.[1] === ownNonce;

export function sessionChip(store, id) {
  return h("span", { class: "chip", title: `Session ${id}` }, bdi(sessionName(store, id)));
}
