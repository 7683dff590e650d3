/** Answers of a page and of the JSON behind it, with the headers that every answer has. */

import type { Failure } from "./failure.ts";
import type { Page } from "./page-file.ts";

const SAFE_HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Adds the headers to an answer that was made elsewhere. */
export function safe(response: Response): Response {
  for (const [name, value] of Object.entries(SAFE_HEADERS)) response.headers.set(name, value);
  return response;
}

export function pageAnswer(
  { html, policy }: Page,
  { isHead = false, status = 200 }: { isHead?: boolean; status?: number } = {},
): Response {
  const headers = {
    ...SAFE_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
  };
  return new Response(isHead ? null : html, { status, headers });
}

export function jsonAnswer(status: number, value: unknown): Response {
  const headers = { ...SAFE_HEADERS, "content-type": "application/json; charset=utf-8" };
  return new Response(JSON.stringify(value), { status, headers });
}

export function failed({ status, error, message }: Failure): Response {
  return jsonAnswer(status, { error, message });
}
