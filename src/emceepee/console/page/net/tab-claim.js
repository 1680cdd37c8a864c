// Which tab this is. A duplicated tab gets a copy of everything kept, and must not act as the one it was copied from.

import { forget, load, save } from "./session-storage.js";

const TAB = "emceepee.tab";
export const MCP = "emceepee.mcp";
export const CALLS = "emceepee.calls";
const TRIES = 5;
const TRIES_ON_RELOAD = 40; // the page before may not have let go of its claim yet, and no copied tab begins so
const PAUSE_MS = 120;
const ANSWER_MS = 250;

/** This tab's nonce, claimed for as long as the page lives. */
export async function claimTab() {
  const kept = load(TAB, null);
  if (typeof kept === "string" && (await isClaimed(kept))) return kept;
  forget(MCP, CALLS);
  const nonce = freshNonce();
  save(TAB, nonce);
  isClaimed(nonce); // nobody else has it, so there is nothing to wait for
  return nonce;
}

function freshNonce() {
  const bytes = crypto.getRandomValues(new Uint8Array(5)); // randomUUID is missing outside of secure contexts
  return [...bytes]
    .map((byte) => byte.toString(36).padStart(2, "0"))
    .join("")
    .slice(0, 8);
}

async function isClaimed(nonce) {
  if (!navigator.locks) return isClaimedByAsking(nonce);
  const isReload = performance.getEntriesByType("navigation")[0]?.type === "reload";
  for (let tries = 0; tries < (isReload ? TRIES_ON_RELOAD : TRIES); tries += 1) {
    if (await isLocked(nonce)) return true;
    await pause(PAUSE_MS);
  }
  return false;
}

function isLocked(nonce) {
  return new Promise((resolve) => {
    const forEver = new Promise(() => {});
    navigator.locks
      .request(`emceepee-tab-${nonce}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock === null ? undefined : forEver;
      })
      .catch(() => resolve(true));
  });
}

/** Without locks, the tab that has the nonce answers when another one asks. */
async function isClaimedByAsking(nonce) {
  if (!("BroadcastChannel" in window)) return true;
  const channel = new BroadcastChannel(`emceepee-tab-${nonce}`);
  let isTaken = false;
  channel.onmessage = ({ data }) => {
    if (data === "taken") isTaken = true;
  };
  channel.postMessage("whose");
  await pause(ANSWER_MS);
  channel.onmessage = ({ data }) => {
    if (data === "whose") channel.postMessage("taken");
  };
  if (isTaken) channel.close();
  return !isTaken;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
