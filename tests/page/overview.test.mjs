import assert from "node:assert/strict";
import { test } from "node:test";

import { roundUp, stepPaths } from "../../src/emceepee/console/page/lib/plot-path.js";
import { formatBytes, sumUp } from "../../src/emceepee/console/page/views/overview/figures.js";

const BOX = { from: 0, to: 100, max: 10, width: 200, height: 50, stepMs: 10 };

test("a plot has a step for each sample with the duration of the sample", () => {
  const { area, line } = stepPaths(
    [
      { at: 20, value: 0 },
      { at: 30, value: 5 },
    ],
    BOX,
  );
  assert.equal(line, "M20 50L40 50L40 25L60 25");
  assert.equal(area, "M20 50L20 50L40 50L40 25L60 25L60 50Z");
});

test("an unknown or missing sample is a gap in the plot", () => {
  const points = [
    { at: 10, value: 1 },
    { at: 20, value: null },
    { at: 30, value: 1 },
    { at: 90, value: NaN },
    { at: 100, value: 1 },
  ];
  assert.equal(stepPaths(points, BOX).line.match(/M/g)?.length, 3);
  assert.deepEqual(stepPaths([], BOX), { area: "", line: "" });
});

test("a plot stays inside its box", () => {
  const points = [
    { at: -50, value: 3 },
    { at: 5, value: 99 },
    { at: 105, value: 3 },
    { at: 300, value: 3 },
  ];
  assert.equal(stepPaths(points, BOX).line, "M0 0L10 0M190 35L200 35");
});

test("plot scales end at round numbers", () => {
  const values = [0, -1, NaN, 0.3, 1, 1.01, 5, 7, 43, 100, 101];
  assert.deepEqual(values.map(roundUp), [1, 1, 1, 0.5, 1, 2, 5, 10, 50, 100, 200]);
});

test("samples are added up from a given time on", () => {
  const sample = (at, change) => ({ at, requests: 1, errors: 0, slowestMs: null, waiting: 0, memory: null, ...change });
  const samples = [
    sample(1, { slowestMs: 99 }),
    sample(2, { errors: 1, slowestMs: 7, memory: 5 }),
    sample(3, { slowestMs: 3 }),
  ];
  assert.deepEqual(sumUp(samples, 1), { requests: 2, errors: 1, slowestMs: 7, memory: 5 });
  assert.deepEqual(sumUp([], 0), { requests: 0, errors: 0, slowestMs: null, memory: null });
});

test("memory is shown in the unit that fits", () => {
  assert.deepEqual([900_000, 65_400_000, 2_345_000_000].map(formatBytes), ["900 kB", "65 MB", "2.35 GB"]);
});
