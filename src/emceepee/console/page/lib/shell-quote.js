// Words for a POSIX shell, as someone can paste them into a terminal: what a server or caller wrote runs nothing there,
// nor in a shell that reads quotes otherwise. dash has no $'…', and fish lets a backslash escape a quote inside of quotes,
// so that no backslash may stand before one.

const PLAIN = /^[A-Za-z0-9_@+:,./-][A-Za-z0-9_@+:,./=-]*$/;
// A terminal acts on pasted control characters, even inside quotes. The other characters deceive a person who reads
// before pasting.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/;
const EACH_UNSAFE = new RegExp(UNSAFE.source, "g");
const UNQUOTABLE = /'|\\{2,}|\\(?='|$)/g;
const PAIRED = /[\ud800-\udbff][\udc00-\udfff]/g;

/**
 * Whether it has characters that cannot be pasted unchanged.
 * @param {string} text
 */
export const isUnsafeToPaste = (text) => UNSAFE.test(text.replace(PAIRED, ""));

/**
 * One word.
 * @param {string} text
 */
export function shellQuote(text) {
  if (PLAIN.test(text)) return text;
  if (!isUnsafeToPaste(text)) return `'${text.replace(UNQUOTABLE, inDoubleQuotes)}'`;
  const bytes = new TextEncoder().encode(text);
  return `$'${[...bytes].map(ansiByte).join("")}'`;
}

/** @param {string} part */
const inDoubleQuotes = (part) => `'"${part.replaceAll("\\", "\\\\")}"'`;

/** @param {number} byte */
function ansiByte(byte) {
  const character = String.fromCharCode(byte);
  const isPlain = byte >= 0x20 && byte < 0x7f && character !== "'" && character !== "\\";
  return isPlain ? character : `\\${byte.toString(8).padStart(3, "0")}`;
}

/**
 * JSON that consists only of characters that can be pasted.
 * @param {unknown} value
 */
export const pasteableJson = (value) =>
  JSON.stringify(value)
    .split(/([\ud800-\udbff][\udc00-\udfff])/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(EACH_UNSAFE, escapeUnit)))
    .join("");

/** @param {string} unit */
const escapeUnit = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
