// Data of this tab that survives a reload. Storage can be full or forbidden; the page then works without it.

/**
 * @template T
 * @param {string} key
 * @param {T} fallback
 * @returns {T}
 */
export function loadItem(key, fallback) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") ?? fallback;
  } catch {
    return fallback;
  }
}

/**
 * Whether it was saved.
 * @param {string} key
 * @param {unknown} value
 */
export function saveItem(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** @param {...string} keys */
export function removeItems(...keys) {
  try {
    for (const key of keys) sessionStorage.removeItem(key);
  } catch {
    // Then nothing was saved before either.
  }
}
