import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { isUnsafeToPaste, pasteableJson, shellQuote } from "../../src/emceepee/console/page/lib/shell-quote.js";
import { asCommand, asDocument, asToolCall, copyWarning } from "../../src/emceepee/console/page/state/request-copy.js";

const row = (change = {}) => ({
  id: "01X",
  session: "s",
  type: "tool_call",
  name: "dig",
  server: "demo",
  status: "success",
  startedAt: 1000,
  endedAt: 1500.25,
  phases: [],
  ...change,
});
const HOSTILE = [
  "plain",
  "",
  "two words",
  "it's",
  '"quoted" $HOME `id` $(id) !! \\ \\n',
  "a;b|c&d>e<f*g?h[i]{j}~#k",
  "=ls",
  "~/x",
  "line one\nline two",
  "\u001b[201~rm -rf\u0007\u0003\r",
  "\u202egnp.exe\u2066",
  "caf\u00e9 \u{1f600} \u4e2d",
  "\\'\\",
  "\\\\'\\\\",
  "-n",
  "'; touch ran; #",
  "\\'; touch ran; #",
  "file:///a\u200b'; touch ran; #",
  "\u200b\\'; touch ran; #\n",
  "\u200b\\",
];

test("a shell reads every copied word unchanged, with any characters", () => {
  const words = HOSTILE.map(shellQuote);
  const read = execFileSync("bash", ["-c", `printf '%s\\0' ${words.join(" ")}`]).toString();
  assert.deepEqual(read.split("\0").slice(0, -1), HOSTILE);
});

test("a shell without $'…' reads each copied word as one word and runs none of it", () => {
  const folder = mkdtempSync(join(tmpdir(), "emceepee-pasted-"));
  try {
    const script = `printf '%s\\0' ${HOSTILE.map(shellQuote).join(" ")}`;
    const read = execFileSync("sh", ["-c", script], { cwd: folder }).toString().split("\0").slice(0, -1);
    assert.equal(read.length, HOSTILE.length);
    for (const [index, text] of HOSTILE.entries()) if (!isUnsafeToPaste(text)) assert.equal(read[index], text);
    assert.deepEqual(readdirSync(folder), []);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("no closing quote follows a backslash, because some shells would not end the string there", () => {
  for (const text of HOSTILE) assert.doesNotMatch(shellQuote(text), /\\'/);
});

test("copied text contains no terminal controls and no deceptive characters", () => {
  for (const text of HOSTILE) {
    assert.equal(isUnsafeToPaste(shellQuote(text)), false, JSON.stringify(text));
    const json = pasteableJson({ [text]: text });
    assert.equal(isUnsafeToPaste(json), false);
    assert.deepEqual(JSON.parse(json), { [text]: text });
  }
  assert.equal(isUnsafeToPaste("half \ud800"), true);
  assert.equal(JSON.parse(pasteableJson("half \ud800")), "half \ud800");
});

test("a copied command has plain arguments as key=value and others as JSON", () => {
  assert.equal(asCommand(row(), { a: 2, b: true, text: "two words" }), "emceepee call demo dig a=2 b=true 'text=two words'");
  assert.equal(asCommand(row(), null), "emceepee call demo dig");
  assert.equal(asCommand(row(), { list: [1, 2] }), `emceepee call demo dig --args '{"list":[1,2]}'`);
  assert.equal(asCommand(row(), { number: "5" }), `emceepee call demo dig --args '{"number":"5"}'`);
  assert.equal(asCommand(row(), { "@x": "y" }), `emceepee call demo dig --args '{"@x":"y"}'`);
  assert.equal(asCommand(row(), { "a=b": "y" }), `emceepee call demo dig --args '{"a=b":"y"}'`);
  assert.equal(asCommand(row(), { text: "a\nb" }), `emceepee call demo dig --args '{"text":"a\\nb"}'`);
});

test("a name that begins with a dash is not read as an option", () => {
  assert.equal(asCommand(row({ name: "--help" }), { a: [1] }), `emceepee call --args '{"a":[1]}' -- demo --help`);
});

test("resources and prompts have their own commands, and requests to emceepee itself have none", () => {
  assert.equal(
    asCommand(row({ type: "resource_read", name: "note://today" }), { uri: "note://to day" }),
    "emceepee read demo 'note://to day'",
  );
  assert.equal(
    asCommand(row({ type: "prompt_get", name: "plan" }), { arguments: { cuisine: "it's" } }),
    `emceepee prompt demo plan 'cuisine=it'"'"'s'`,
  );
  assert.equal(asCommand(row({ type: "own_tool" }), {}), null);
  assert.equal(asCommand(row({ type: "protocol" }), {}), null);
});

test("a copied tool call equals the call of a model", () => {
  assert.deepEqual(asToolCall(row(), { a: 1 }), {
    name: "execute_tool",
    arguments: { server: "demo", tool: "dig", args: { a: 1 } },
  });
  assert.deepEqual(asToolCall(row({ type: "own_tool", name: "list_servers" }), undefined), {
    name: "list_servers",
    arguments: {},
  });
});

test("a request copied as JSON has all of its data", () => {
  assert.deepEqual(JSON.parse(JSON.stringify(asDocument(row(), { args: { a: 1 }, result: { content: [] }, logs: [] }))), {
    id: "01X",
    type: "tool_call",
    server: "demo",
    name: "dig",
    status: "success",
    startedAt: "1970-01-01T00:00:01.000Z",
    durationMs: 500.25,
    arguments: { a: 1 },
    result: { content: [] },
  });
});

test("a copied request has a warning about masked and truncated values", () => {
  assert.equal(copyWarning("a=1", { logs: [] }), "");
  assert.match(copyWarning('{"api_key":"***"}', { logs: [] }), /masked/);
  assert.match(copyWarning("a", { isCut: true, logs: [] }), /cut/);
});
