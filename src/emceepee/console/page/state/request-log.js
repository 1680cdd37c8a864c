// The requests, by id and in the order in which they began. A changed row is a new object, because a frozen view keeps
// the old ones.

const MAX_ROWS = 20_000;
const BULK_SORT_FROM = 64; // above this number of new rows, sorting once is faster than inserting each one

/**
 * @param {Wire.RequestRow} a
 * @param {Wire.RequestRow} b
 */
const byStart = (a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1);

export class RequestLog {
  /** @type {Map<string, Wire.RequestRow>} */
  #byId = new Map();
  /** @type {Wire.RequestRow[]} */
  #ordered = [];

  /** Oldest first. Callers must not change it. */
  get ordered() {
    return this.#ordered;
  }

  /** @param {string} id */
  get(id) {
    return this.#byId.get(id);
  }

  /** @param {Wire.RequestRow[]} rows */
  put(rows) {
    /** @type {Map<string, Wire.RequestRow>} */
    const fresh = new Map();
    for (const given of rows) {
      const old = this.#byId.get(given.id);
      const row = old && given.args === undefined ? { ...given, args: old.args } : given;
      this.#byId.set(row.id, row);
      if (old === undefined || fresh.has(row.id) || !this.#replace(old, row)) fresh.set(row.id, row);
    }
    if (fresh.size > BULK_SORT_FROM) this.#ordered = this.#ordered.concat([...fresh.values()]).sort(byStart);
    else for (const row of fresh.values()) this.#ordered.splice(this.#indexFor(row), 0, row);
    this.#evict();
  }

  /**
   * Whether the new row has the same position as the old one, which it has if its beginning is unchanged.
   * @param {Wire.RequestRow} old
   * @param {Wire.RequestRow} row
   */
  #replace(old, row) {
    const index = this.#indexFor(old);
    for (const at of [index, index - 1]) {
      if (this.#ordered[at] !== old) continue;
      if (old.startedAt === row.startedAt) {
        this.#ordered[at] = row;
        return true;
      }
      this.#ordered.splice(at, 1);
      return false;
    }
    this.#ordered = this.#ordered.filter((each) => each.id !== row.id);
    return false;
  }

  /** @param {Wire.RequestRow} row */
  #indexFor(row) {
    let low = 0;
    let high = this.#ordered.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (byStart(this.#ordered[middle], row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #evict() {
    if (this.#ordered.length <= MAX_ROWS) return;
    const evicted = this.#ordered.splice(0, this.#ordered.length - MAX_ROWS);
    for (const row of evicted) this.#byId.delete(row.id);
  }
}
