import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import {
  MAX_SPAN_MS,
  MIN_SPAN_MS,
  TimeScale,
  tickLabel,
  ticks,
} from "../../src/emceepee/console/page/views/waterfall/time-scale.js";

const NOON = Date.UTC(2026, 4, 1, 12);
const zone = process.env.TZ;
afterEach(() => {
  process.env.TZ = zone ?? "";
});

function scale(from, span, isFollowing = false) {
  return Object.assign(new TimeScale(), { from, span, isFollowing });
}

test("in follow mode the newest time is near the right edge", () => {
  const following = scale(0, 1000, true);
  following.follow(50_000);
  const x = following.place(50_000, 100);
  assert.ok(x > 90 && x < 100);
  const still = scale(0, 1000);
  still.follow(50_000);
  assert.equal(still.from, 0);
});

test("zooming keeps the time under the pointer in place", () => {
  const zoomed = scale(1000, 1000);
  const before = zoomed.place(1250, 800);
  zoomed.zoom(0.5, 0.25);
  assert.equal(zoomed.span, 500);
  assert.ok(Math.abs(zoomed.place(1250, 800) - before) < 1e-6);
});

test("zooming stops at the shortest and the longest span", () => {
  const zoomed = scale(0, 1000);
  zoomed.zoom(1e-9);
  assert.equal(zoomed.span, MIN_SPAN_MS);
  zoomed.zoom(1e12);
  assert.equal(zoomed.span, MAX_SPAN_MS);
});

test("moving or centering the view ends follow mode", () => {
  const panned = scale(0, 1000, true);
  panned.pan(-200);
  assert.deepEqual([panned.from, panned.isFollowing], [-200, false]);
  const centered = scale(0, 1000, true);
  centered.center(4000, 5000);
  assert.deepEqual([centered.from, centered.to, centered.isFollowing], [4000, 5000, false]);
});

test("fit shows everything with a margin", () => {
  const fitted = scale(0, 1);
  fitted.fit(NOON, NOON + 60_000);
  assert.ok(fitted.place(NOON, 1000) > 10 && fitted.place(NOON + 60_000, 1000) < 990);
});

test("ticks are at round times, far enough apart, and inside the view", () => {
  for (const span of [20, 333, 5000, 61_000, 3_600_000, 86_400_000, MAX_SPAN_MS]) {
    const view = scale(NOON + 12_345, span);
    const found = ticks(view, 900);
    assert.ok(found.length >= 1 && found.length <= 60, `${found.length} ticks in ${span} ms`);
    for (const [index, { at, x, step }] of found.entries()) {
      assert.ok(x >= 0 && x <= 900);
      if (index > 0) assert.ok(x - found[index - 1].x >= 96);
      if (step < 3_600_000) assert.equal(at % step, 0);
    }
  }
});

test("hours are round on the reader's clock, even with a half-hour offset", () => {
  process.env.TZ = "Asia/Kolkata";
  const found = ticks(scale(NOON, 6 * 3_600_000), 900);
  assert.deepEqual(found.slice(0, 2).map(tickLabel), ["18:00", "19:00"]);
});

test("a label is as precise as the step requires", () => {
  process.env.TZ = "UTC";
  const at = Date.UTC(2026, 4, 1, 9, 5, 7, 40);
  assert.equal(tickLabel({ at, step: 60_000 }), "09:05");
  assert.equal(tickLabel({ at, step: 1000 }), "09:05:07");
  assert.equal(tickLabel({ at, step: 20 }), "07.040 s");
});
