// The console's own routes.

export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string | undefined} code
   * @param {string} message
   * @param {{ problems?: Wire.Problem[] }} [details]
   */
  constructor(status, code, message, details) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

export function redirectToLogin() {
  location.assign("/console/login");
}

/**
 * @param {string} path
 * @param {Record<string, string>} query
 * @returns {Promise<any>}
 */
export async function getJson(path, query) {
  return parseResponse(
    await send(`${path}?${new URLSearchParams(query)}`, { headers: { accept: "application/json" } }),
  );
}

/**
 * @param {string} path
 * @param {unknown} body
 * @returns {Promise<any>}
 */
export async function postJson(path, body) {
  const headers = { "content-type": "application/json", accept: "application/json" };
  return parseResponse(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function send(path, options) {
  try {
    return await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError(0, "UNREACHABLE", "emceepee could not be reached. Check that it is running, then try again.");
  }
}

/** @param {Response} response */
async function parseResponse(response) {
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  if (response.status === 401) redirectToLogin();
  const error = body?.error;
  const message =
    typeof error?.message === "string" ? error.message : `emceepee answered with status ${response.status}.`;
  throw new ApiError(response.status, error?.code, message, error?.details);
}
