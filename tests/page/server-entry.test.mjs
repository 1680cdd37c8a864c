import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY_FIELDS, entryOf, fieldsOf } from "../../src/emceepee/console/page/forms/server-entry.js";

const read = (change, before) => entryOf({ ...EMPTY_FIELDS, name: "demo", ...change }, before);

test("an address is read with its headers, one per line", () => {
  const { entry, problems } = read({
    url: " https://mcp.example/mcp ",
    type: "sse",
    headers: "Authorization: Bearer a:b \n\n X-Tenant :t1\n",
    args: "of no use here",
  });
  assert.deepEqual(problems, {});
  assert.deepEqual(entry, {
    name: "demo",
    url: "https://mcp.example/mcp",
    type: "sse",
    headers: { Authorization: "Bearer a:b", "X-Tenant": "t1" },
  });
});

test("a program is read with its unchanged arguments and its environment", () => {
  const { entry, problems } = read({
    kind: "command",
    command: "npx",
    args: "-y\n a b \r\n--x=1",
    env: "A=1=2\n B=",
    cwd: " /work ",
    description: " Digs ",
    allowedTools: "read_*\n list",
    timeout: "1.5",
    url: "of no use here",
  });
  assert.deepEqual(problems, {});
  assert.deepEqual(entry, {
    name: "demo",
    command: "npx",
    args: ["-y", " a b ", "--x=1"],
    env: { A: "1=2", B: "" },
    cwd: "/work",
    description: "Digs",
    allowedTools: ["read_*", "list"],
    timeout_ms: 1500,
  });
});

test("a missing or invalid value is reported at its field", () => {
  assert.deepEqual(Object.keys(read({ name: " ", url: "ftp://x", headers: "a: b\nno colon", timeout: "soon" }).problems), [
    "name",
    "url",
    "headers",
    "timeout",
  ]);
  assert.match(read({ url: "http://x", headers: "a: b\nno colon" }).problems.headers, /Line 2/);
  assert.match(read({ kind: "command", env: "X" }).problems.env, /NAME=value/);
  assert.ok(read({ kind: "command" }).problems.command);
});

test("masked values have to be entered again unless they are no longer needed", () => {
  const before = { name: "demo", url: "https://h/?key=***", headers: { Authorization: "***" } };
  const fields = fieldsOf(before);
  assert.equal(fields.headers, "Authorization: ***");
  assert.deepEqual(Object.keys(entryOf(fields, before).problems), ["url", "headers"]);
  assert.deepEqual(entryOf({ ...fields, kind: "command", command: "npx" }, before).problems, {});
});

test("a user and a password in an address have to be entered again", () => {
  const url = { name: "demo", url: "https://***@host/mcp" };
  assert.deepEqual(Object.keys(entryOf({ ...fieldsOf(url), description: "Digs" }, url).problems), ["url"]);
  const program = { name: "demo", command: "sql", args: ["postgresql://***@db"] };
  assert.deepEqual(Object.keys(entryOf({ ...fieldsOf(program), description: "Digs" }, program).problems), ["args"]);
});

test("arguments survive editing unchanged, with any characters", () => {
  const args = ["-c", "import x\nx.run()", "", " ", "\t", '"quoted"', '"', "a\r\nb", " two words ", "\\n", "{}", "'"];
  const before = { name: "demo", command: "python", args };
  const fields = fieldsOf(before);
  assert.equal(fields.args.split("\n").length, args.length);
  assert.deepEqual(entryOf(fields, before), { entry: before, problems: {} });
  const more = entryOf({ ...fields, args: `${fields.args}\n\n--more\n` }, before);
  assert.deepEqual(more.entry.args, [...args, "--more"]);
});

test("an argument that begins with a quote and is invalid JSON is rejected", () => {
  const { problems } = read({ kind: "command", command: "x", args: '-v\n"two\nlines"' });
  assert.match(problems.args, /Line 2.*JSON/);
});

test("settings without a field are kept if they apply to the kind of server", () => {
  const before = { name: "demo", url: "https://h", mode: "legacy", sessionHeader: false, roots: ["file:///x"] };
  assert.deepEqual(entryOf(fieldsOf(before), before).entry, before);
  const program = entryOf({ ...fieldsOf(before), kind: "command", command: "npx" }, before).entry;
  assert.deepEqual(program, { name: "demo", command: "npx", mode: "legacy", roots: ["file:///x"] });
});

test("lost secrets without a field are reported", () => {
  const before = { name: "demo", url: "https://h", oauth: { client_id: "x", client_secret: "***" } };
  assert.match(entryOf(fieldsOf(before), before).problems.name, /oauth/);
});

test("names with a meaning in JavaScript are ordinary names", () => {
  const { entry } = read({ kind: "command", command: "x", env: "__proto__=1\nconstructor=2" });
  assert.deepEqual(Object.entries(entry.env), [
    ["__proto__", "1"],
    ["constructor", "2"],
  ]);
});
