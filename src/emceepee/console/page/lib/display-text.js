// Text of servers is untrusted: characters that could reorder, hide, or fake neighboring text are made visible.

const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const INVISIBLE = /[\u200b\u2028\u2029\u2060-\u2064\ufeff]|\udb40[\udc00-\udc7f]/g;
const SUSPICIOUS = new RegExp(`${CONTROLS.source}|${REORDERING.source}|${INVISIBLE.source}|\\r`);

/** @param {string} character */
const codePointLabel = (character) =>
  `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** @param {string} character */
function controlPicture(character) {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "\u2421" : codePointLabel(character);
}

/**
 * The text as it can be shown: line breaks and tabs stay, and deceptive characters are spelled out.
 * @param {unknown} value
 */
export function revealInvisible(value) {
  const text = String(value);
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, controlPicture)
    .replace(REORDERING, codePointLabel)
    .replace(INVISIBLE, codePointLabel);
}

/**
 * At most `max` characters, with a mark where text is cut. Never splits a surrogate pair.
 * @param {unknown} value
 * @param {number} max
 */
export function truncate(value, max) {
  const text = String(value);
  if (text.length <= max) return text;
  const end = text.charCodeAt(max - 1) >> 10 === 0x36 ? max - 1 : max;
  return `${text.slice(0, end)}…`;
}

/**
 * One line, for labels: line breaks and runs of spaces become one space.
 * @param {unknown} value
 * @param {number} [max]
 */
export const singleLine = (value, max = 200) => truncate(String(value).replace(/\s+/g, " ").trim(), max);
