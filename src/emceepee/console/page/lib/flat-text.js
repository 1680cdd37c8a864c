// All words of a JSON value in sequence, as text to search.

const MAX_PARTS = 1000;

/**
 * Names and primitive values, in order.
 * @param {unknown} value
 */
export function flatText(value) {
  /** @type {string[]} */
  const parts = [];
  /** @type {unknown[]} */
  const left = [value];
  while (left.length > 0 && parts.length < MAX_PARTS) {
    const next = left.pop();
    if (next === null || next === undefined) continue;
    if (typeof next !== "object") parts.push(String(next));
    else if (Array.isArray(next)) left.push(...next.toReversed());
    else left.push(...Object.entries(next).flat().reverse());
  }
  return parts.join(" ");
}
