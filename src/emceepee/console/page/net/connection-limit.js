// A browser opens six lines to one host, shared by all tabs. Calls that would take the last ones wait, so that the feed
// and the answer to a question always get through.

const MOST = 3;
let used = 0;
const waiting = [];

/** Do `work` when a line is free for it. */
export function withLine(work) {
  return navigator.locks ? withSharedLine(work) : withOwnLine(work);
}

async function withSharedLine(work) {
  const names = Array.from({ length: MOST }, (_, index) => `emceepee-line-${index}`);
  for (const name of names) {
    const tried = await navigator.locks.request(
      name,
      { ifAvailable: true },
      async (lock) => lock && { value: await work() },
    );
    if (tried) return tried.value;
  }
  return navigator.locks.request(names[Math.floor(Math.random() * MOST)], work);
}

async function withOwnLine(work) {
  if (used >= MOST) await new Promise((resolve) => waiting.push(resolve));
  else used += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else used -= 1;
  }
}
