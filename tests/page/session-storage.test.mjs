import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { FakeStorage, setGlobal } from "./browser.mjs";

const { loadItem, removeItems, saveItem } = await import("../../src/emceepee/console/page/net/session-storage.js");

let storage;
beforeEach(() => {
  storage = new FakeStorage();
  setGlobal("sessionStorage", storage);
});

test("a saved value is loaded again", () => {
  assert.equal(saveItem("calls", [{ tool: "dig" }]), true);
  assert.deepEqual(loadItem("calls", []), [{ tool: "dig" }]);
});

test("a missing or unreadable value is replaced by the fallback", () => {
  assert.equal(loadItem("calls", "none"), "none");
  storage.setItem("calls", "{half");
  assert.equal(loadItem("calls", "none"), "none");
});

test("a removed value is gone", () => {
  saveItem("a", 1);
  saveItem("b", 2);
  saveItem("c", 3);
  removeItems("a", "b");
  assert.deepEqual([loadItem("a", null), loadItem("b", null), loadItem("c", null)], [null, null, 3]);
});

test("a full storage is reported", () => {
  storage.room = 10;
  assert.equal(saveItem("calls", "x".repeat(50)), false);
  assert.equal(loadItem("calls", "none"), "none");
});

test("the page works without storage", () => {
  Object.defineProperty(globalThis, "sessionStorage", {
    configurable: true,
    get: () => {
      throw new Error("SecurityError");
    },
  });
  assert.equal(saveItem("a", 1), false);
  assert.equal(loadItem("a", "none"), "none");
  removeItems("a");
});
