// Which requests are shown. Pure, and quick enough to run over all rows at every change.

/** @typedef {{ session: string, server: string, status: string, type: string, search: string }} Filter Empty: any. */

/** @type {WeakMap<Wire.RequestRow, string>} */
const searchTexts = new WeakMap();

/** @type {Readonly<Filter>} */
export const EMPTY_FILTER = Object.freeze({ session: "", server: "", status: "", type: "", search: "" });
const BACKEND_TYPES = new Set(["tool_call", "resource_read", "prompt_get"]);

/** @param {Wire.RequestRow} row */
function searchTextOf(row) {
  let text = searchTexts.get(row);
  if (text === undefined) {
    text = [row.name, row.server, row.id, row.error, row.progress?.message].filter(Boolean).join("\n").toLowerCase();
    searchTexts.set(row, text);
  }
  return text;
}

/**
 * @param {Wire.RequestRow} row
 * @param {string} type
 */
function matchesType(row, type) {
  return type === "backends" ? BACKEND_TYPES.has(row.type) : row.type === type;
}

/**
 * @param {Wire.RequestRow} row
 * @param {string} status
 */
function matchesStatus(row, status) {
  return status === "task" ? Boolean(row.taskId) : row.status === status;
}

/**
 * The rows that fit, newest first, and what there is to say about all of them.
 * @param {Wire.RequestRow[]} ordered
 * @param {Filter} filter
 */
export function filterRequests(ordered, filter) {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  /** @type {Wire.RequestRow[]} */
  const rows = [];
  let pending = 0;
  let oldest = Infinity;
  let newest = -Infinity;
  const sessions = new Set();
  for (let index = ordered.length - 1; index >= 0; index -= 1) {
    const row = ordered[index];
    if (filter.session && row.session !== filter.session) continue;
    if (filter.server && row.server !== filter.server) continue;
    if (filter.status && !matchesStatus(row, filter.status)) continue;
    if (filter.type && !matchesType(row, filter.type)) continue;
    if (words.length > 0 && !words.every((word) => searchTextOf(row).includes(word))) continue;
    rows.push(row);
    sessions.add(row.session);
    if (row.status === "pending") pending += 1;
    if (row.startedAt < oldest) oldest = row.startedAt;
    const end = row.endedAt ?? row.startedAt;
    if (end > newest) newest = end;
  }
  return { rows, pending, oldest, newest, sessions: sessions.size };
}

/** @param {Filter} filter */
export const isFiltering = (filter) => Object.values(filter).some(Boolean);
