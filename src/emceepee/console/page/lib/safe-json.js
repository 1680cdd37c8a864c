// JSON of any kind and depth, read and written without surprises.

const TOO_DEEP = "(nested too deeply to be shown)";

/**
 * @param {unknown} value
 * @param {number} [indent]
 */
export function stringify(value, indent) {
  try {
    return JSON.stringify(value, null, indent) ?? "";
  } catch {
    return TOO_DEEP;
  }
}

/**
 * The value if it is an array, else an empty array.
 * @template T
 * @param {T[] | null | undefined} value
 * @returns {T[]}
 */
export const asArray = (value) => (Array.isArray(value) ? value : []);
