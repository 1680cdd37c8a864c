// Server-sent events from a fetch. Unlike EventSource, it can send headers and resume an interrupted stream on demand.

/** @typedef {{ event: string, id: string | undefined, data: string }} SseEvent */

/** Converts pieces of text to events. A long line is searched only once, in any number of pieces. */
export class SseParser {
  /** @type {string[]} */
  #pieces = [];
  /** @type {string[]} */
  #data = [];
  #event = "";
  /** @type {string | undefined} */
  #id;
  #endedWithReturn = false;

  /** @param {(event: SseEvent) => void} onEvent */
  constructor(onEvent) {
    this.onEvent = onEvent;
  }

  /** @param {string} text */
  push(text) {
    let start = 0;
    if (this.#endedWithReturn && text[0] === "\n") start = 1;
    this.#endedWithReturn = text.length > 0 && text.at(-1) === "\r";
    const hasReturns = text.includes("\r");
    for (let at = start; at < text.length; at = start) {
      const end = hasReturns ? lineEnd(text, at) : text.indexOf("\n", at);
      if (end === -1) break;
      this.#pieces.push(text.slice(at, end));
      start = end + (text[end] === "\r" && text[end + 1] === "\n" ? 2 : 1);
      const line = this.#pieces.length === 1 ? this.#pieces[0] : this.#pieces.join("");
      this.#pieces = [];
      this.#parseLine(line);
    }
    if (start < text.length) this.#pieces.push(text.slice(start));
  }

  /** @param {string} line */
  #parseLine(line) {
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const raw = colon === -1 ? "" : line.slice(colon + 1);
    const value = raw.startsWith(" ") ? raw.slice(1) : raw;
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }

  #dispatch() {
    if (this.#data.length > 0 || this.#id !== undefined) {
      this.onEvent({ event: this.#event || "message", id: this.#id, data: this.#data.join("\n") });
    }
    this.#data = [];
    this.#event = "";
    this.#id = undefined;
  }
}

/**
 * @param {string} text
 * @param {number} from
 */
function lineEnd(text, from) {
  const newline = text.indexOf("\n", from);
  const carriageReturn = text.indexOf("\r", from);
  if (newline === -1 || carriageReturn === -1) return Math.max(newline, carriageReturn);
  return Math.min(newline, carriageReturn);
}

/**
 * Read a response to its end. `onBytes` is called for every piece, including comments, because it shows that the
 * connection is alive.
 * @param {Response} response
 * @param {(event: SseEvent) => void} onEvent
 * @param {() => void} [onBytes]
 */
export async function readEvents(response, onEvent, onBytes) {
  const parser = new SseParser(onEvent);
  const decoder = new TextDecoder();
  if (!response.body) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes?.();
      parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {Response} response */
export const isEventStream = (response) => (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
