// The displayed names of sessions.

import { singleLine } from "../lib/display-text.js";

/**
 * @typedef {Pick<import("./store.js").Store, "labelOf" | "sessions" | "sessionsRevision">} Sessions
 */

const CONSOLE_LABEL = /^emceepee-console\s+(\S+)$/;
/** @type {string | null} */
let ownNonce = null;

/** @param {string} nonce */
export function setOwnNonce(nonce) {
  ownNonce = nonce;
}

/**
 * @param {Sessions} store
 * @param {string} id
 */
export function sessionName(store, id) {
  const label = store.labelOf(id);
  const page = CONSOLE_LABEL.exec(label ?? "");
  if (page) return page[1] === ownNonce ? "This page" : `Console page ${singleLine(page[1], 8)}`;
  return label ? singleLine(label, 60) : `Session ${shortId(id)}`;
}

/**
 * The shortest distinct name: without the version, and with the end of the id if two sessions have the same name.
 * @param {Sessions} store
 * @param {string} id
 */
export function shortSessionName(store, id) {
  if (shortNames.store !== store || shortNames.revision !== store.sessionsRevision) shortNames = countShortNames(store);
  const short = withoutVersion(sessionName(store, id));
  const others = (shortNames.counts.get(short) ?? 0) - (store.sessions.has(id) ? 1 : 0);
  return others > 0 ? `${short} ${String(id).slice(-3)}` : short;
}

/** @typedef {{ store: Sessions | null, revision: number, counts: Map<string, number> }} ShortNames */

/**
 * Counted once for all rows: with many sessions, comparing each pair would take longer than drawing them.
 * @type {ShortNames}
 */
let shortNames = { store: null, revision: 0, counts: new Map() };

/**
 * @param {Sessions} store
 * @returns {ShortNames}
 */
function countShortNames(store) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const id of store.sessions.keys()) {
    const short = withoutVersion(sessionName(store, id));
    counts.set(short, (counts.get(short) ?? 0) + 1);
  }
  return { store, revision: store.sessionsRevision, counts };
}

/** @param {string} name */
const withoutVersion = (name) => name.replace(/\s+v?\d[\w.+-]*$/, "");

/**
 * The end of an id, because ULIDs of the same minute begin alike.
 * @param {string} id
 */
export const shortId = (id) => (String(id).length > 8 ? `…${String(id).slice(-6)}` : String(id));

/** @param {Wire.Session | undefined} session */
export const isOwnSession = (session) => CONSOLE_LABEL.exec(session?.label ?? "")?.[1] === ownNonce;
