// A browser opens six connections per host, shared by all tabs. Calls that would use the last ones wait, so that the
// feed and answers to questions always get a connection.

const MAX_CALLS = 3;
let used = 0;
/** @type {(() => void)[]} */
const waiting = [];

/**
 * Do `work` once a connection is available.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export function withConnectionSlot(work) {
  return navigator.locks ? withSharedSlot(work) : withLocalSlot(work);
}

/**
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withSharedSlot(work) {
  const names = Array.from({ length: MAX_CALLS }, (_, index) => `emceepee-connection-${index}`);
  for (const name of names) {
    const attempt = await navigator.locks.request(
      name,
      { ifAvailable: true },
      async (lock) => lock && { value: await work() },
    );
    if (attempt) return attempt.value;
  }
  return navigator.locks.request(names[Math.floor(Math.random() * MAX_CALLS)], work);
}

/**
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withLocalSlot(work) {
  if (used >= MAX_CALLS) await /** @type {Promise<void>} */ (new Promise((resolve) => waiting.push(resolve)));
  else used += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else used -= 1;
  }
}
