// Converts a server's settings between the form's text and the input of add_server.

/**
 * The text of the fields. Lists have one entry per line; an argument that does not fit on a line is written as JSON.
 * @typedef {object} ServerFields
 * @property {string} name
 * @property {"url" | "command"} kind
 * @property {string} url
 * @property {string} type Of an address: empty if it is to be found out.
 * @property {string} headers
 * @property {string} command
 * @property {string} args
 * @property {string} env
 * @property {string} cwd
 * @property {string} description
 * @property {string} allowedTools
 * @property {string} deniedTools
 * @property {string} timeout Seconds.
 *
 * @typedef {{ [field in keyof ServerFields]?: string }} FieldProblems
 */

const MASK = "***";
const SHOWN = ["name", "description", "url", "command", "type", "headers", "args", "env", "cwd"];
const LIMITS = ["allowedTools", "deniedTools", "timeout_ms"];
/** Settings that the form has no field for, and that remain unchanged. */
const isOther = (/** @type {string} */ key) => !SHOWN.includes(key) && !LIMITS.includes(key);

/** @type {Readonly<ServerFields>} */
export const EMPTY_FIELDS = Object.freeze({
  name: "",
  kind: "url",
  url: "",
  type: "",
  headers: "",
  command: "",
  args: "",
  env: "",
  cwd: "",
  description: "",
  allowedTools: "",
  deniedTools: "",
  timeout: "",
});

/** @param {string} text */
const lines = (text) => text.split(/\r?\n/).filter((line) => line.trim() !== "");

/** @param {string} arg */
const argLine = (arg) => (/^"|[\r\n]|^\s*$/.test(arg) ? JSON.stringify(arg) : arg);

/**
 * @param {{ [name: string]: string } | undefined} pairs
 * @param {string} sign
 */
const pairLines = (pairs, sign) =>
  Object.entries(pairs ?? {})
    .map(([name, value]) => `${name}${sign}${value}`)
    .join("\n");

/**
 * The fields for existing settings. Masked values must be entered again.
 * @param {Wire.ServerEntry} entry
 * @returns {ServerFields}
 */
export function fieldsOf(entry) {
  return {
    name: entry.name,
    kind: entry.command === undefined ? "url" : "command",
    url: entry.url ?? "",
    type: entry.command === undefined ? (entry.type ?? "") : "",
    headers: pairLines(entry.headers, ": "),
    command: entry.command ?? "",
    args: (entry.args ?? []).map(argLine).join("\n"),
    env: pairLines(entry.env, "="),
    cwd: entry.cwd ?? "",
    description: entry.description ?? "",
    allowedTools: (entry.allowedTools ?? []).join("\n"),
    deniedTools: (entry.deniedTools ?? []).join("\n"),
    timeout: entry.timeout_ms === undefined ? "" : String(entry.timeout_ms / 1000),
  };
}

/**
 * The settings, or the problems by field. `before` has settings that the form does not show.
 * @param {ServerFields} fields
 * @param {Wire.ServerEntry} [before]
 * @returns {{ entry: Wire.ServerEntry, problems: FieldProblems }}
 */
export function entryOf(fields, before) {
  /** @type {FieldProblems} */
  const problems = {};
  const kept = Object.entries(before ?? {}).filter(([key]) => isOther(key) && !isOfOtherKind(key, fields.kind));
  /** @type {Wire.ServerEntry} */
  const entry = { ...Object.fromEntries(kept), name: fields.name.trim() };
  if (!entry.name) problems.name = "Give it a name.";
  const secret = kept.find(([, value]) => JSON.stringify(value).includes(MASK));
  if (secret) problems.name = `It has secrets under ${secret[0]}, which has no field here. Remove the server, and add it again.`;
  if (fields.kind === "url") readAddress(fields, entry, problems);
  else readProgram(fields, entry, problems);
  if (fields.description.trim()) entry.description = fields.description.trim();
  for (const key of /** @type {const} */ (["allowedTools", "deniedTools"])) {
    const globs = lines(fields[key]).map((line) => line.trim());
    if (globs.length > 0) entry[key] = globs;
  }
  readTimeout(fields.timeout, entry, problems);
  for (const key of /** @type {(keyof ServerFields)[]} */ (Object.keys(fields)))
    if (isUsed(key, fields.kind) && fields[key].includes(MASK)) problems[key] ??= `Write what stands as ${MASK} again.`;
  return { entry, problems };
}

const OF_ADDRESSES = ["url", "type", "headers", "sessionHeader", "oauth"];
const OF_PROGRAMS = ["command", "args", "env", "cwd", "restartConfig"];
/**
 * @param {string} key
 * @param {ServerFields["kind"]} kind
 */
const isOfOtherKind = (key, kind) => (kind === "url" ? OF_PROGRAMS : OF_ADDRESSES).includes(key);
/**
 * @param {string} key
 * @param {ServerFields["kind"]} kind
 */
const isUsed = (key, kind) => !isOfOtherKind(key, kind);

/**
 * @param {ServerFields} fields
 * @param {Wire.ServerEntry} entry
 * @param {FieldProblems} problems
 */
function readAddress(fields, entry, problems) {
  entry.url = fields.url.trim();
  if (!/^(https?|unix):\/\/./i.test(entry.url)) problems.url = "Enter an address that begins with http:// or https://.";
  if (fields.type) entry.type = fields.type;
  const { pairs, problem } = readPairs(fields.headers, /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/, "Name: value");
  if (problem) problems.headers = problem;
  if (pairs) entry.headers = pairs;
}

/**
 * @param {ServerFields} fields
 * @param {Wire.ServerEntry} entry
 * @param {FieldProblems} problems
 */
function readProgram(fields, entry, problems) {
  entry.command = fields.command.trim();
  if (!entry.command) problems.command = "Enter the program to start.";
  const { args, problem: wrongArgument } = readArguments(fields.args);
  if (wrongArgument) problems.args = wrongArgument;
  if (args) entry.args = args;
  const { pairs, problem } = readPairs(fields.env, /^\s*([^=\s]+)=(.*)$/, "NAME=value");
  if (problem) problems.env = problem;
  if (pairs) entry.env = pairs;
  if (fields.cwd.trim()) entry.cwd = fields.cwd.trim();
}

/**
 * @param {string} text
 * @returns {{ args?: string[], problem?: string }}
 */
function readArguments(text) {
  const found = lines(text).map((line) => (line.startsWith('"') ? jsonString(line) : line));
  if (found.length === 0) return {};
  const wrong = found.indexOf(null);
  if (wrong >= 0) return { problem: `Line ${wrong + 1}: what begins with a quote is read as JSON, such as "a\\nb".` };
  return { args: found.map(String) };
}

/** @param {string} text */
function jsonString(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} text
 * @param {RegExp} form
 * @param {string} example
 * @returns {{ pairs?: { [name: string]: string }, problem?: string }}
 */
function readPairs(text, form, example) {
  const found = lines(text).map((line) => form.exec(line));
  if (found.length === 0) return {};
  const wrong = found.findIndex((match) => match === null);
  if (wrong >= 0) return { problem: `Line ${wrong + 1}: write ${example}.` };
  return { pairs: Object.fromEntries(found.map((match) => [match?.[1] ?? "", match?.[2] ?? ""])) };
}

/**
 * @param {string} text
 * @param {Wire.ServerEntry} entry
 * @param {FieldProblems} problems
 */
function readTimeout(text, entry, problems) {
  if (!text.trim()) return;
  const seconds = Number(text);
  if (Number.isFinite(seconds) && seconds >= 0) entry.timeout_ms = Math.round(seconds * 1000);
  else problems.timeout = "Enter a number of seconds, or nothing.";
}
