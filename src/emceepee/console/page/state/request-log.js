// The requests, by id and in the order they began. A changed row is a new object: a frozen view keeps the old ones.

const MOST_ROWS = 20_000;
const SORT_ALL_ABOVE = 64; // placing each of many new rows by itself would take longer than sorting once

const startsBefore = (a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1);

export class RowLog {
  #byId = new Map();
  #ordered = [];

  /** Oldest first. Not to be changed by who reads it. */
  get ordered() {
    return this.#ordered;
  }

  get(id) {
    return this.#byId.get(id);
  }

  put(rows) {
    const fresh = new Map();
    for (const row of rows) {
      const old = this.#byId.get(row.id);
      this.#byId.set(row.id, row);
      if (old === undefined || fresh.has(row.id) || !this.#replace(old, row)) fresh.set(row.id, row);
    }
    if (fresh.size > SORT_ALL_ABOVE) this.#ordered = this.#ordered.concat([...fresh.values()]).sort(startsBefore);
    else for (const row of fresh.values()) this.#ordered.splice(this.#indexFor(row), 0, row);
    this.#forget();
  }

  /** Whether the new one stands where the old one stood; not if its beginning changed. */
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

  #indexFor(row) {
    let low = 0;
    let high = this.#ordered.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (startsBefore(this.#ordered[middle], row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #forget() {
    if (this.#ordered.length <= MOST_ROWS) return;
    const gone = this.#ordered.splice(0, this.#ordered.length - MOST_ROWS);
    for (const row of gone) this.#byId.delete(row.id);
  }
}
