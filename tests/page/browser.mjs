// As much of a browser as the page's pure modules ask for. Import it before them.

const page = new EventTarget();
export const document = Object.assign(new EventTarget(), { hidden: false });

globalThis.addEventListener = page.addEventListener.bind(page);
globalThis.document = document;

/** Something happens to the page: the network returns, it is shown again. */
export const happens = (type) => page.dispatchEvent(new Event(type));

export function setHidden(isHidden) {
  document.hidden = isHidden;
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Replace a global that node may also have. */
export const setGlobal = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true });

export class FakeStorage {
  items = new Map();
  room = Infinity;

  getItem(key) {
    return this.items.get(key) ?? null;
  }

  setItem(key, value) {
    if (value.length > this.room) throw new Error("QuotaExceededError");
    this.items.set(key, value);
  }

  removeItem(key) {
    this.items.delete(key);
  }
}
