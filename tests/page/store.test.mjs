import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { setGlobal, setHidden } from "./browser.mjs";

const { RequestLog } = await import("../../src/emceepee/console/page/state/request-log.js");
const { isOwnSession, sessionName, setOwnNonce, shortSessionName } =
  await import("../../src/emceepee/console/page/state/session-names.js");
const { Store } = await import("../../src/emceepee/console/page/state/store.js");

let frames;
beforeEach(() => {
  frames = [];
  setGlobal("requestAnimationFrame", (callback) => frames.push(callback));
  mock.timers.enable({ apis: ["setTimeout"] });
});
afterEach(() => mock.timers.reset());

const paint = () => frames.splice(0).forEach((frame) => frame());
const session = (id, label, change = {}) => ({
  id,
  label,
  servers: [],
  questions: [],
  tasks: [],
  timers: [],
  ...change,
});

test("listeners are notified once per frame of any number of changes", () => {
  const store = new Store();
  const told = [];
  store.subscribe((topics) => told.push([...topics]));
  store.putSession(session("a", "one"));
  store.putSession(session("b", "two"));
  store.addEvents([]);
  assert.deepEqual(told, []);
  paint();
  mock.timers.tick(1000);
  assert.deepEqual(told, [["sessions", "events"]]);
});

test("a hidden page, or one without frames, is notified by the clock", () => {
  for (const isHidden of [true, false]) {
    setHidden(isHidden);
    const store = new Store();
    let told = 0;
    store.subscribe(() => (told += 1));
    store.setFeed("live");
    mock.timers.tick(250);
    assert.equal(told, 1);
  }
});

test("a new feed replaces all earlier data, in the order of time", () => {
  const store = new Store();
  store.putSession(session("old", "gone"));
  store.addLogs([{ timestamp: "2026-01-01T00:00:09Z" }]);
  store.replaceAll({
    hello: {},
    sessions: new Map([["new", session("new", "here")]]),
    rows: new RequestLog(),
    events: [
      { id: "2", createdAt: "2026-01-01T00:00:02Z" },
      { id: "1", createdAt: "2026-01-01T00:00:01Z" },
    ],
    logs: [],
  });
  assert.deepEqual([[...store.sessions.keys()], store.logs, store.isReady], [["new"], [], true]);
  assert.deepEqual(
    store.events.map(({ createdAt }) => createdAt.slice(-3)),
    ["01Z", "02Z"],
  );
  assert.equal(store.labelOf("old"), "gone", "the name of a session that has gone is still known");
});

test("only the newest events are kept", () => {
  const store = new Store();
  const moments = Array.from({ length: 10_005 }, (_, index) => String(index).padStart(6, "0"));
  store.addEvents(moments.map((moment) => ({ id: moment, createdAt: moment })));
  assert.deepEqual([store.events.length, store.events[0].createdAt], [10_000, "000005"]);
});

test("an event that the next holder of its session sends again is stored once", () => {
  const store = new Store();
  const event = (id) => ({ id, createdAt: id });
  const snapshot = { hello: {}, sessions: new Map(), rows: new RequestLog(), logs: [] };
  store.replaceAll({ ...snapshot, events: [event("1"), event("1")] });
  store.addEvents([event("2")]);
  store.addEvents([event("1"), event("2"), event("3"), event("3")]);
  assert.deepEqual(
    store.events.map(({ id }) => id),
    ["1", "2", "3"],
  );
});

test("questions of all sessions are sorted by time, and a task is found in any session", () => {
  const store = new Store();
  store.putSession(session("a", "", { questions: [{ timestamp: "2" }], tasks: [{ taskId: "t" }] }));
  store.putSession(session("b", "", { questions: [{ timestamp: "1" }] }));
  assert.deepEqual(
    store.questions().map((entry) => entry.session),
    ["b", "a"],
  );
  assert.equal(store.findTask("t").session, "a");
  assert.equal(store.findTask("u"), null);
});

test("a session is labeled with the shortest unique form of its caller's name", () => {
  const store = new Store();
  setOwnNonce("mine");
  const labels = {
    id000001: "claude-code 1.2.3",
    id000002: "claude-code 1.3",
    id000003: "other 2",
    own: "emceepee-console mine",
  };
  for (const [id, label] of Object.entries(labels)) store.putSession(session(id, label));
  assert.equal(sessionName(store, "id000001"), "claude-code 1.2.3");
  assert.equal(sessionName(store, "own"), "This page");
  assert.ok(isOwnSession(store.sessions.get("own")));
  assert.equal(sessionName(store, "01K8ZZZZZZabcdef"), "Session …abcdef");
  assert.equal(shortSessionName(store, "id000001"), "claude-code 001");
  assert.equal(shortSessionName(store, "id000003"), "other");
  store.removeSession("id000002");
  assert.equal(shortSessionName(store, "id000001"), "claude-code");
});
