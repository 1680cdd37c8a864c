// What this tab keeps over a reload. Storage can be full or refused; the page then goes on without.

export function load(key, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Whether it was kept. */
export function save(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function forget(...keys) {
  try {
    for (const key of keys) sessionStorage.removeItem(key);
  } catch {
    // Nothing was kept, then.
  }
}
