// Keys for objects that have no id.

/** @type {WeakMap<object, number>} */
const keys = new WeakMap();
let keyCount = 0;

/**
 * Log lines have no ids, and two lines in the same millisecond can be equal, so the object is the identity.
 * @param {object} object
 * @returns {number}
 */
export function objectKey(object) {
  let key = keys.get(object);
  if (key === undefined) keys.set(object, (key = keyCount += 1));
  return key;
}
