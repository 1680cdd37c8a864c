import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { happens, setHidden } from "./browser.mjs";

const { Backoff, retryNow } = await import("../../src/emceepee/console/page/net/backoff.js");

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

/** Begin to wait; what it gives says whether the wait is over. */
function waiting(backoff) {
  let isOver = false;
  backoff.wait().then(() => (isOver = true));
  return async () => {
    await Promise.resolve();
    return isOver;
  };
}

test("the backoff doubles each delay up to ten seconds", () => {
  const backoff = new Backoff();
  const delays = [];
  for (let tries = 0; tries < 7; tries += 1) {
    delays.push(backoff.delay);
    backoff.wait();
  }
  assert.deepEqual(delays, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
});

test("a success resets the backoff", () => {
  const backoff = new Backoff();
  backoff.wait();
  backoff.reset();
  assert.equal(backoff.delay, 500);
});

test("a delay lasts as long as announced", async () => {
  const isOver = waiting(new Backoff());
  mock.timers.tick(499);
  assert.equal(await isOver(), false);
  mock.timers.tick(1);
  assert.equal(await isOver(), true);
});

test("the delay ends when the network or the person returns", async () => {
  for (const wake of [() => happens("online"), () => happens("pageshow"), () => setHidden(false), retryNow]) {
    const first = waiting(new Backoff());
    const second = waiting(new Backoff());
    wake();
    assert.deepEqual([await first(), await second()], [true, true]);
  }
});

test("a hidden page continues to wait", async () => {
  const isOver = waiting(new Backoff());
  setHidden(true);
  assert.equal(await isOver(), false);
  setHidden(false);
  assert.equal(await isOver(), true);
});
