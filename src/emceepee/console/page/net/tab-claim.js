// The identity of this tab. A duplicated tab gets a copy of all saved data, and must not act as the original tab.

import { loadItem, removeItems, saveItem } from "./session-storage.js";

const TAB_KEY = "emceepee.tab";
export const MCP_KEY = "emceepee.mcp";
export const CALLS_KEY = "emceepee.calls";
const ATTEMPTS = 5;
const ATTEMPTS_ON_RELOAD = 40; // the previous page may still hold its claim; a copied tab never starts this way
const RETRY_MS = 120;
const REPLY_MS = 250;

/** This tab's nonce, claimed while the page lives. */
export async function claimTabNonce() {
  const saved = /** @type {unknown} */ (loadItem(TAB_KEY, null));
  if (typeof saved === "string" && (await tryClaim(saved))) return saved;
  removeItems(MCP_KEY, CALLS_KEY);
  const nonce = freshNonce();
  saveItem(TAB_KEY, nonce);
  tryClaim(nonce); // no other tab has it, so there is nothing to wait for
  return nonce;
}

function freshNonce() {
  const bytes = crypto.getRandomValues(new Uint8Array(5)); // randomUUID is missing outside of secure contexts
  return [...bytes]
    .map((byte) => byte.toString(36).padStart(2, "0"))
    .join("")
    .slice(0, 8);
}

/** @param {string} nonce */
async function tryClaim(nonce) {
  if (!navigator.locks) return claimByBroadcast(nonce);
  const isReload = performance
    .getEntriesByType("navigation")
    .some((entry) => "type" in entry && entry.type === "reload");
  for (let attempt = 0; attempt < (isReload ? ATTEMPTS_ON_RELOAD : ATTEMPTS); attempt += 1) {
    if (await tryLock(nonce)) return true;
    await delay(RETRY_MS);
  }
  return false;
}

/**
 * @param {string} nonce
 * @returns {Promise<boolean>}
 */
function tryLock(nonce) {
  return new Promise((resolve) => {
    /** @type {Promise<void>} */
    const never = new Promise(() => {});
    navigator.locks
      .request(`emceepee-tab-${nonce}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock === null ? undefined : never;
      })
      .catch(() => resolve(true));
  });
}

/**
 * Without locks, the tab that has the nonce answers when another tab asks for it.
 * @param {string} nonce
 */
async function claimByBroadcast(nonce) {
  if (!("BroadcastChannel" in window)) return true;
  const channel = new BroadcastChannel(`emceepee-tab-${nonce}`);
  let isTaken = false;
  channel.onmessage = ({ data }) => {
    if (data === "taken") isTaken = true;
  };
  channel.postMessage("whose");
  await delay(REPLY_MS);
  channel.onmessage = ({ data }) => {
    if (data === "whose") channel.postMessage("taken");
  };
  if (isTaken) channel.close();
  return !isTaken;
}

/** @param {number} ms */
const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
