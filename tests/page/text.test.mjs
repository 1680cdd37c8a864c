import assert from "node:assert/strict";
import { test } from "node:test";

import { toLocalInput, toRfc3339 } from "../../src/emceepee/console/page/forms/local-datetime.js";
import { revealInvisible, singleLine, truncate } from "../../src/emceepee/console/page/lib/display-text.js";
import {
  formatCoarse,
  formatDuration,
  formatPreciseTime,
  formatSize,
  formatTime,
  pluralize,
} from "../../src/emceepee/console/page/lib/format.js";
import { asArray, stringify } from "../../src/emceepee/console/page/lib/safe-json.js";

test("deceptive characters are spelled out, and ordinary text is unchanged", () => {
  assert.equal(revealInvisible("plain é 漢 😀\n\tline"), "plain é 漢 😀\n\tline");
  assert.equal(revealInvisible("a\u202eb"), "a⟨U+202E⟩b");
  assert.equal(revealInvisible("a\u200bb\ufeff"), "a⟨U+200B⟩b⟨U+FEFF⟩");
  assert.equal(revealInvisible("a\u0000\u001b\u007fb"), "a␀␛␡b");
  assert.equal(revealInvisible("a\u0085"), "a⟨U+0085⟩");
  assert.equal(revealInvisible("one\r\ntwo\rthree"), "one\ntwo\nthree");
  assert.equal(revealInvisible("hidden\u{e0041}"), "hidden⟨U+E0041⟩");
  assert.equal(revealInvisible(null), "null");
});

test("a text is truncated with a mark, and never inside a character", () => {
  assert.equal(truncate("abc", 3), "abc");
  assert.equal(truncate("abcd", 3), "abc…");
  assert.equal(truncate("ab😀", 3), "ab…");
});

test("a label is one line", () => {
  assert.equal(singleLine("  one\n\n two\t three "), "one two three");
  assert.equal(singleLine("x".repeat(300)).length, 201);
});

test("durations are rounded for reading", () => {
  const cases = {
    0: "0 ms",
    0.4: "0.4 ms",
    12.6: "13 ms",
    1234: "1.23 s",
    12_345: "12.3 s",
    61_000: "1 min 1 s",
    3_660_000: "1 h 1 min",
    200_000_000: "2 d",
    "-5": "0 ms",
    NaN: "–",
  };
  for (const [ms, text] of Object.entries(cases)) assert.equal(formatDuration(Number(ms)), text);
});

test("a countdown is not more precise than whole seconds", () => {
  const cases = { 0: "0 s", 1600: "2 s", 61_000: "1 min 01 s", 900_000: "15 min", 7_200_000: "2 h" };
  for (const [ms, text] of Object.entries(cases)) assert.equal(formatCoarse(Number(ms)), text);
});

test("an invalid time is shown as a dash", () => {
  assert.equal(formatTime("soon"), "–");
  assert.equal(formatPreciseTime(NaN), "–");
  assert.match(formatPreciseTime(Date.UTC(2026, 0, 1, 0, 0, 0, 7)), /\.007$/);
});

test("numbers agree with their nouns", () => {
  assert.equal(pluralize(1, "request"), "1 request");
  assert.equal(pluralize(12_000, "request"), "12,000 requests");
  assert.equal(pluralize(2, "entry", "entries"), "2 entries");
  assert.deepEqual([formatSize(999), formatSize(20_400), formatSize(1_500_000)], ["999 characters", "20 kB", "1.5 MB"]);
});

test("a local time has the offset of its own day", () => {
  const zone = process.env.TZ;
  try {
    process.env.TZ = "Europe/Berlin";
    assert.equal(toRfc3339("2026-01-15T14:30"), "2026-01-15T14:30:00+01:00");
    assert.equal(toRfc3339("2026-07-15T14:30:05"), "2026-07-15T14:30:05+02:00");
    assert.equal(toLocalInput("2026-07-15T12:30:05Z"), "2026-07-15T14:30:05");
    process.env.TZ = "America/St_Johns";
    assert.equal(toRfc3339("2026-01-15T14:30"), "2026-01-15T14:30:00-03:30");
    assert.equal(toLocalInput("2026-01-15T18:00:00Z"), "2026-01-15T14:30");
  } finally {
    process.env.TZ = zone ?? "";
  }
  assert.equal(toRfc3339("whenever"), null);
  assert.equal(toLocalInput("whenever"), "");
});

test("JSON of any depth becomes text", () => {
  assert.equal(stringify({ a: [1] }), '{"a":[1]}');
  assert.equal(stringify(undefined), "");
  const circle = {};
  circle.circle = circle;
  assert.match(stringify(circle), /too deeply/);
});

test("a value that is not an array becomes an empty array", () => {
  assert.deepEqual([asArray([1]), asArray(null), asArray("ab"), asArray({ length: 2 })], [[1], [], [], []]);
});
