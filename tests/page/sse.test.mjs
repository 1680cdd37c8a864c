import assert from "node:assert/strict";
import { test } from "node:test";

import { SseParser, isEventStream, readEvents } from "../../src/emceepee/console/page/net/sse.js";

function parse(...pieces) {
  const events = [];
  const parser = new SseParser((event) => events.push(event));
  for (const piece of pieces) parser.push(piece);
  return events;
}

const STREAM = ": hello\nevent: requests\nid: 7\ndata: one\ndata: two\n\nretry: 5\ndata:three\n\n";
const EVENTS = [
  { event: "requests", id: "7", data: "one\ntwo" },
  { event: "message", id: undefined, data: "three" },
];

test("SSE fields form an event, and comments and unknown fields are ignored", () => {
  assert.deepEqual(parse(STREAM), EVENTS);
});

test("an event is parsed from any chunks of the stream, with any line ending", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = STREAM.replaceAll("\n", end);
    assert.deepEqual(parse(...text), EVENTS, `character by character, ${JSON.stringify(end)}`);
    for (let at = 0; at <= text.length; at += 1) assert.deepEqual(parse(text.slice(0, at), text.slice(at)), EVENTS);
  }
});

test("an incomplete event is not emitted", () => {
  assert.deepEqual(parse("data: half\n"), []);
  assert.deepEqual(parse("data: half"), []);
});

test("an id without data is reported, so that a stream can be resumed after it", () => {
  assert.deepEqual(parse("id: 3\n\n"), [{ event: "message", id: "3", data: "" }]);
});

test("an id belongs to its own event, and an id with a null character is ignored", () => {
  const [first, second, third] = parse("id: 1\ndata: a\n\ndata: b\n\nid: \0\ndata: c\n\n");
  assert.deepEqual([first.id, second.id, third.id], ["1", undefined, undefined]);
});

test("one space after the colon is not part of the value, and a field may have no value", () => {
  assert.deepEqual(parse("data:  two\n\n")[0].data, " two");
  assert.deepEqual(parse("data\n\n")[0].data, "");
});

test("a response is read to its end, with characters split between chunks", async () => {
  const bytes = new TextEncoder().encode("data: é€😀\n\n: ping\n\n");
  const body = new ReadableStream({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const events = [];
  let pieces = 0;
  await readEvents(
    new Response(body),
    (event) => events.push(event),
    () => (pieces += 1),
  );
  assert.deepEqual(
    events.map(({ data }) => data),
    ["é€😀"],
  );
  assert.equal(pieces, bytes.length);
});

test("a response without a body has no events", async () => {
  await readEvents(new Response(null), assert.fail);
});

test("an event stream is recognized by its content type", () => {
  const typed = (type) => new Response("", { headers: { "content-type": type } });
  assert.ok(isEventStream(typed("text/event-stream; charset=utf-8")));
  assert.ok(!isEventStream(typed("application/json")));
});
