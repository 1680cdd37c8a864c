import assert from "node:assert/strict";
import { test } from "node:test";

import { RequestLog } from "../../src/emceepee/console/page/state/request-log.js";
import { extent, phasesOf, statusLabel } from "../../src/emceepee/console/page/state/request-phases.js";
import {
  EMPTY_FILTER,
  filterRequests,
  isFiltering,
  readFilter,
  writeFilter,
} from "../../src/emceepee/console/page/views/waterfall/request-filter.js";

const row = (id, change = {}) => ({
  id,
  session: "s",
  type: "tool_call",
  name: "dig",
  server: "demo",
  status: "success",
  startedAt: 1000,
  endedAt: 1500,
  phases: [],
  ...change,
});
const ids = (rows) => rows.map(({ id }) => id);

test("requests are sorted by start time, in any order of arrival", () => {
  const log = new RequestLog();
  log.put([row("b", { startedAt: 20 }), row("a", { startedAt: 10 })]);
  log.put([row("d", { startedAt: 15 }), row("c", { startedAt: 15 })]);
  assert.deepEqual(ids(log.ordered), ["a", "c", "d", "b"]);
});

test("a changed request replaces its entry and does not modify the old object", () => {
  const log = new RequestLog();
  log.put([row("a", { status: "pending" }), row("b")]);
  const before = log.get("a");
  log.put([row("a")]);
  assert.deepEqual([log.ordered.length, log.get("a").status, before.status], [2, "success", "pending"]);
  log.put([row("a", { startedAt: 5000 })]);
  assert.deepEqual(ids(log.ordered), ["b", "a"]);
});

test("a batch with duplicate requests adds each one once", () => {
  const log = new RequestLog();
  const many = Array.from({ length: 300 }, (_, index) => row(`r${index % 200}`, { startedAt: (index * 7) % 200 }));
  log.put(many);
  log.put(many);
  assert.equal(log.ordered.length, 200);
  const starts = log.ordered.map(({ startedAt }) => startedAt);
  assert.deepEqual(
    starts,
    starts.toSorted((a, b) => a - b),
  );
});

test("requests over the limit are dropped, oldest first", () => {
  const log = new RequestLog();
  log.put(Array.from({ length: 20_010 }, (_, index) => row(`r${index}`, { startedAt: index })));
  assert.deepEqual([log.ordered.length, log.ordered[0].id, log.get("r9")], [20_000, "r10", undefined]);
});

test("a filter returns the matching requests, newest first, with their totals", () => {
  const rows = [
    row("a", { startedAt: 10, endedAt: 40, session: "s1" }),
    row("b", { startedAt: 20, endedAt: undefined, status: "pending", session: "s2", server: "files", taskId: "t" }),
    row("c", {
      startedAt: 30,
      endedAt: 35,
      status: "error",
      error: "No such file",
      type: "own_tool",
      session: "s1",
    }),
  ];
  const found = (change) => ids(filterRequests(rows, { ...EMPTY_FILTER, ...change }).rows);
  assert.deepEqual(found({}), ["c", "b", "a"]);
  assert.deepEqual(found({ session: "s1" }), ["c", "a"]);
  assert.deepEqual(found({ server: "files" }), ["b"]);
  assert.deepEqual(found({ status: "error" }), ["c"]);
  assert.deepEqual(found({ status: "task" }), ["b"]);
  assert.deepEqual(found({ type: "own_tool" }), ["c"]);
  assert.deepEqual(found({ type: "backends" }), ["b", "a"]);
  assert.deepEqual(found({ search: "such FILE" }), ["c"]);
  assert.deepEqual(found({ search: "nothing" }), []);
  const { pending, oldest, newest, sessions } = filterRequests(rows, EMPTY_FILTER);
  assert.deepEqual({ pending, oldest, newest, sessions }, { pending: 1, oldest: 10, newest: 40, sessions: 2 });
});

test("a script's calls are listed below it in order, or by start time if the script is hidden", () => {
  const rows = [
    row("before", { startedAt: 5 }),
    row("script", { startedAt: 10, type: "own_tool" }),
    row("first", { startedAt: 11, parent: "script" }),
    row("between", { startedAt: 12 }),
    row("second", { startedAt: 13, parent: "script" }),
    row("after", { startedAt: 14 }),
  ];
  const found = (change) => ids(filterRequests(rows, { ...EMPTY_FILTER, ...change }).rows);
  assert.deepEqual(found({}), ["after", "between", "script", "first", "second", "before"]);
  assert.deepEqual(found({ type: "backends" }), ["after", "second", "between", "first", "before"]);
});

test("a search finds requests by all words of their arguments", () => {
  const rows = [
    row("a", { args: { path: "notes/today.md", deep: [{ note: 'say "Hello"' }, null, 7] } }),
    row("b", { args: { path: "notes/other.md" } }),
    row("c"),
  ];
  const found = (search) => ids(filterRequests(rows, { ...EMPTY_FILTER, search }).rows);
  assert.deepEqual(found("notes/"), ["b", "a"]);
  assert.deepEqual(found('dig "hello"'), ["a"]);
  assert.deepEqual(found("other demo"), ["b"]);
  assert.deepEqual(found("7"), ["a"]);
});

test("the arguments of a request arrive once and are kept", () => {
  const log = new RequestLog();
  log.put([row("a", { status: "pending", args: { x: 1 } })]);
  log.put([row("a")]);
  assert.deepEqual([log.get("a").status, log.get("a").args, log.ordered[0].args], ["success", { x: 1 }, { x: 1 }]);
});

test("a filter survives being written to an address and read again", () => {
  const filter = { session: "s=1&x", server: "d\u00e9mo server", status: "error", type: "", search: "a?b #c %20 +" };
  assert.deepEqual(readFilter(writeFilter(filter)), filter);
  assert.equal(writeFilter(EMPTY_FILTER), "");
  assert.equal(readFilter(""), null);
  assert.equal(readFilter("other=1"), null);
  assert.deepEqual(readFilter("search=%zz&search=second"), { ...EMPTY_FILTER, search: "%zz" });
  assert.equal(readFilter(`search=${"x".repeat(9999)}`).search.length, 500);
});

test("an empty filter matches every request", () => {
  assert.equal(isFiltering(EMPTY_FILTER), false);
  assert.equal(isFiltering({ ...EMPTY_FILTER, search: "x" }), true);
});

test("a running request ends now, and a finished one without an end time at its start", () => {
  assert.deepEqual(extent(row("a"), 9000), [1000, 1500]);
  assert.deepEqual(extent(row("a", { endedAt: undefined, status: "pending" }), 9000), [1000, 9000]);
  assert.deepEqual(extent(row("a", { endedAt: undefined, status: "error" }), 9000), [1000, 1000]);
});

test("phases are placed in time, and an open phase lasts as long as its request", () => {
  const phases = [
    { kind: "queued", from: 0, to: 5 },
    { kind: "call", from: 5, to: null },
    { kind: "unheard-of", from: 7 },
    { kind: "maybe_waiting", from: 8, to: 9 },
  ];
  assert.deepEqual(phasesOf(row("a", { phases }), 9000), [
    { kind: "queued", from: 1000, to: 1005, isOpen: false },
    { kind: "call", from: 1005, to: 1500, isOpen: true },
    { kind: "call", from: 1007, to: 1500, isOpen: true },
    { kind: "maybe_waiting", from: 1008, to: 1009, isOpen: false },
  ]);
  assert.deepEqual(phasesOf(row("a", { phases: null }), 9000), []);
});

test("a running task is labeled as a task", () => {
  assert.equal(statusLabel(row("a", { status: "pending", taskId: "t" })), "Running as a task");
  assert.equal(statusLabel(row("a", { status: "pending" })), "Running");
  assert.equal(statusLabel(row("a", { status: "unheard-of" })), "unheard-of");
});
