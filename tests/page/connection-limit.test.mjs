import assert from "node:assert/strict";
import { test } from "node:test";

import { setGlobal } from "./browser.mjs";

const { withConnectionSlot } = await import("../../src/emceepee/console/page/net/connection-limit.js");

/** Locks as browsers have them, without the parts that nobody here uses. */
class FakeLocks {
  held = new Map();

  request(name, options, work = options) {
    const before = this.held.get(name);
    if (options.ifAvailable && before) return Promise.resolve(work(null));
    const done = Promise.resolve(before).then(() => work({ name }));
    const quiet = done.then(
      () => {},
      () => {},
    );
    this.held.set(name, quiet);
    quiet.then(() => this.held.get(name) === quiet && this.held.delete(name));
    return done;
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Five calls at once: the started ones, a function that ends each, and the outcomes of all. */
function fiveCalls() {
  const begun = [];
  const calls = Array.from({ length: 5 }, (_, index) =>
    withConnectionSlot(
      () =>
        new Promise((resolve, reject) => {
          begun.push({ end: () => resolve(index), fail: () => reject(new Error("cut")) });
        }),
    ),
  );
  return { begun, endings: Promise.allSettled(calls) };
}

for (const [name, locks] of [
  ["in one tab", undefined],
  ["in all tabs", new FakeLocks()],
]) {
  test(`three calls run at once ${name}, and the others wait for a free place`, async () => {
    setGlobal("navigator", { locks });
    const { begun, endings } = fiveCalls();
    await settled();
    assert.equal(begun.length, 3);
    for (let index = 0; index < begun.length; index += 1) {
      begun[index].end();
      await settled();
    }
    assert.deepEqual(
      (await endings).map(({ value }) => value),
      [0, 1, 2, 3, 4],
    );
  });

  test(`a call that fails ${name} frees its place`, async () => {
    setGlobal("navigator", { locks });
    const { begun, endings } = fiveCalls();
    await settled();
    for (let index = 0; index < begun.length; index += 1) {
      begun[index].fail();
      await settled();
    }
    assert.deepEqual(
      (await endings).map(({ status }) => status),
      Array(5).fill("rejected"),
    );
  });
}
