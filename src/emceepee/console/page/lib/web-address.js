// Addresses that a browser may be sent to.

/**
 * @param {string | undefined} address
 * @returns {URL | null} null unless it is http or https
 */
export function parseWebAddress(address) {
  try {
    const url = new URL(address ?? "");
    return ["http:", "https:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}
