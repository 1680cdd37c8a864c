// A request as text to copy: as a command, as a model's call, or with all known details.

import { isUnsafeToPaste, pasteableJson, shellQuote } from "../lib/shell-quote.js";

/** @typedef {{ [name: string]: any }} Arguments */

const MASKED = /\*\*\*/;

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The call with which a model would repeat the request.
 * @param {Wire.RequestRow} row
 * @param {any} args
 */
export function asToolCall(row, args) {
  const given = args ?? {};
  if (row.type === "own_tool" || row.type === "protocol") return { name: row.name, arguments: given };
  if (row.type === "resource_read")
    return { name: "read_resource", arguments: { server: row.server, uri: given.uri ?? row.name } };
  if (row.type === "prompt_get") {
    return {
      name: "get_prompt",
      arguments: { server: row.server, name: row.name, arguments: given.arguments ?? given },
    };
  }
  return { name: "execute_tool", arguments: { server: row.server, tool: row.name, args: given } };
}

/**
 * The command line that repeats the request, or null for emceepee's own tools and protocol requests, which have none.
 * @param {Wire.RequestRow} row
 * @param {any} args
 * @returns {string | null}
 */
export function asCommand(row, args) {
  const given = isObject(args) ? args : {};
  const server = row.server ?? "";
  switch (row.type) {
    case "tool_call":
      return command("call", [server, row.name], given);
    case "resource_read":
      return command("read", [server, given.uri ?? row.name], {});
    case "prompt_get":
      return command("prompt", [server, row.name], isObject(given.arguments) ? given.arguments : given);
    default:
      return null;
  }
}

/**
 * @param {"call" | "read" | "prompt"} verb
 * @param {unknown[]} names
 * @param {Arguments} given
 */
function command(verb, names, given) {
  const positional = names.map(String);
  const entries = Object.entries(given);
  const fitsWords = verb === "prompt" || entries.every(([name, value]) => isPlainArgument(name, value));
  const options = fitsWords ? [] : ["--args", pasteableJson(given)];
  if (fitsWords) positional.push(...entries.map(([name, value]) => `${name}=${wordOf(value)}`));
  // A name that begins with a dash would be parsed as an option.
  const isDashed = positional.some((word) => word.startsWith("-"));
  const words = isDashed ? [...options, "--", ...positional] : [...positional, ...options];
  return ["emceepee", verb, ...words.map(shellQuote)].join(" ");
}

/**
 * Whether key=value has the same meaning, even for a tool whose schema is unknown to the command.
 * @param {string} name
 * @param {unknown} value
 */
function isPlainArgument(name, value) {
  if (!/^[^=@\s-][^=]*$/.test(name) || isUnsafeToPaste(name)) return false;
  if (typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value === "string" && !isUnsafeToPaste(value) && !isJson(value);
}

/** @param {unknown} value */
const wordOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * All details that the page has.
 * @param {Wire.RequestRow} row
 * @param {Wire.RequestDetail | null} detail
 */
export function asDocument(row, detail) {
  const { startedAt, endedAt, status } = row;
  return {
    id: row.id,
    type: row.type,
    server: row.server,
    name: row.name,
    status,
    startedAt: new Date(startedAt).toISOString(),
    durationMs: endedAt === undefined ? undefined : Math.round((endedAt - startedAt) * 1000) / 1000,
    taskId: row.taskId,
    error: row.error,
    arguments: detail?.args ?? undefined,
    result: detail?.result ?? undefined,
    isCut: detail?.isCut || undefined,
  };
}

/**
 * A warning for the person who pastes the copy, or an empty string.
 * @param {string} text
 * @param {Wire.RequestDetail | null} detail
 */
export function copyWarning(text, detail) {
  if (detail?.isCut) return " It is not whole: long values were cut.";
  return MASKED.test(text) ? " Secrets in it are masked: fill them in." : "";
}
