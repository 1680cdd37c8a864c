// The console's own routes.

export class ApiError extends Error {
  constructor(status, code, message, details) {
    super(message);
    Object.assign(this, { status, code, details });
  }
}

export function toLogin() {
  location.assign("/console/login");
}

export async function getJson(path, query) {
  return answered(await reached(`${path}?${new URLSearchParams(query)}`, { headers: { accept: "application/json" } }));
}

export async function postJson(path, body) {
  const headers = { "content-type": "application/json", accept: "application/json" };
  return answered(await reached(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function reached(path, options) {
  try {
    return await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError(0, "UNREACHABLE", "emceepee could not be reached. Check that it is running, then try again.");
  }
}

async function answered(response) {
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  if (response.status === 401) toLogin();
  const error = body?.error;
  const message =
    typeof error?.message === "string" ? error.message : `emceepee answered with status ${response.status}.`;
  throw new ApiError(response.status, error?.code, message, error?.details);
}
