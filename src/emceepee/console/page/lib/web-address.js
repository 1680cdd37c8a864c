// Addresses that a browser may open.

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

/**
 * @param {{ authorizationUrl?: string, authorizationServer?: string }} server
 * @returns {{ href: string, label: string } | null} the link to its login, with the names of the page and of the
 *   authorization server, which may be another site; null unless it waits for one
 */
export function loginLink(server) {
  const page = parseWebAddress(server.authorizationUrl);
  if (!page) return null;
  const issuer = parseWebAddress(server.authorizationServer);
  const label = `Log in at ${page.host}`;
  return { href: page.href, label: issuer && issuer.host !== page.host ? `${label} for ${issuer.host}` : label };
}
