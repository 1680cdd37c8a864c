// Selects the requests to show. Pure, and fast enough to run over all rows at every change.

import { flatText } from "../../lib/flat-text.js";

/** @typedef {{ session: string, server: string, status: string, type: string, search: string }} Filter Empty: any. */

/** @type {WeakMap<Wire.RequestRow, string>} */
const searchTexts = new WeakMap();

/** @type {Readonly<Filter>} */
export const EMPTY_FILTER = Object.freeze({ session: "", server: "", status: "", type: "", search: "" });
const MAX_VALUE = 500; // characters of a value in the page's address
const BACKEND_TYPES = new Set(["tool_call", "resource_read", "prompt_get"]);

/** @param {Wire.RequestRow} row */
function searchTextOf(row) {
  let text = searchTexts.get(row);
  if (text === undefined) {
    const parts = [row.name, row.server, row.id, row.error, row.progress?.message, flatText(row.args)];
    text = parts.filter(Boolean).join("\n").toLowerCase();
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
 * Returns the calls of a script below it, in order. A call whose script is not shown is sorted by its own time.
 * @param {Wire.RequestRow[]} rows
 */
function nest(rows) {
  const shown = new Set(rows.map((row) => row.id));
  /** @type {Map<string, Wire.RequestRow[]>} */
  const calls = new Map();
  /** @type {Wire.RequestRow[]} */
  const others = [];
  for (const row of rows) {
    if (row.parent === undefined || !shown.has(row.parent)) others.push(row);
    else if (calls.has(row.parent)) calls.get(row.parent)?.push(row);
    else calls.set(row.parent, [row]);
  }
  return others.flatMap((row) => (calls.has(row.id) ? [row, ...(calls.get(row.id) ?? []).reverse()] : row));
}

/**
 * The matching rows, newest first, and their summary.
 * @param {Wire.RequestRow[]} ordered
 * @param {Filter} filter
 */
export function filterRequests(ordered, filter) {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  /** @type {Wire.RequestRow[]} */
  const rows = [];
  let hasNested = false;
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
    if (row.parent !== undefined) hasNested = true;
    if (row.status === "pending") pending += 1;
    if (row.startedAt < oldest) oldest = row.startedAt;
    const end = row.endedAt ?? row.startedAt;
    if (end > newest) newest = end;
  }
  return { rows: hasNested ? nest(rows) : rows, pending, oldest, newest, sessions: sessions.size };
}

/** @param {Filter} filter */
export const isFiltering = (filter) => Object.values(filter).some(Boolean);

/** @type {(keyof Filter)[]} */
const KEYS = ["search", "session", "server", "status", "type"];

/**
 * The filter in the form of the page's address; empty if nothing is filtered.
 * @param {Filter} filter
 */
export function writeFilter(filter) {
  const query = new URLSearchParams();
  for (const key of KEYS) if (filter[key]) query.set(key, filter[key]);
  return query.toString();
}

/**
 * null if the address contains no filter.
 * @param {string} query
 * @returns {Filter | null}
 */
export function readFilter(query) {
  const given = new URLSearchParams(query);
  if (!KEYS.some((key) => given.has(key))) return null;
  const filter = { ...EMPTY_FILTER };
  for (const key of KEYS) filter[key] = (given.get(key) ?? "").slice(0, MAX_VALUE);
  return filter;
}
