// JSON as text, whatever it holds: what is nested too deeply to be written is said to be so.

const TOO_DEEP = "(nested too deeply to be shown)";

export function stringify(value, indent) {
  try {
    return JSON.stringify(value, null, indent) ?? "";
  } catch {
    return TOO_DEEP;
  }
}
