/** The answers that a gate gives instead of the handler: problem details as in RFC 9457. */

import { callerOf, type Refusal } from "../acquire/decision.ts";
import { checkInteger, checkOptions, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { type Header, policyName } from "./headers.ts";
import type { RefusedAnswer } from "./options.ts";

/** A whole response. */
export interface Answer {
  readonly status: number;
  readonly headers: readonly Header[];
  readonly body: string | Uint8Array;
}

const PROBLEM_TYPES = "https://iana.org/assignments/http-problem-types";
const PROBLEM_JSON = "application/problem+json";
const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain; charset=utf-8";
/** Seconds after which a client may retry while the store cannot answer. */
const UNAVAILABLE_RETRY_SECONDS = 1;

const NAME_PATTERN = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE_PATTERN = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that say where a body ends. One that is wrong breaks the connection. */
const FRAMING_PATTERN = /^(?:content-length|transfer-encoding)$/i;

/** Returns 429, or 413 for a request that no wait can make fit. */
export function refusedAnswer(
  refusal: Refusal,
  exposeParents: boolean,
  headers: readonly Header[],
): Answer {
  const { limits, message, ...json } = refusal.toJSON({ parents: exposeParents });
  const own = callerOf(refusal) ?? "";
  const violated = refusal.violations
    .filter(({ entityId }) => exposeParents || entityId === own)
    .map((status) => policyName(status, own));
  const more = { detail: message, "violated-policies": violated, ...json, limits };
  if (refusal.neverFits) {
    return problem(413, "Request is larger than the limit and can never fit", more, headers);
  }
  const title = "Request cannot be satisfied as assigned quota has been exceeded";
  const retryAfter = { name: "retry-after", value: refusal.retryAfterHeader };
  return problem(429, title, more, [...headers, retryAfter], "#quota-exceeded");
}

/** Returns 401: the request has no key. */
export function anonymousAnswer(): Answer {
  const detail = "The request names no key that a limit could count for.";
  return problem(401, "Unauthorized", { detail }, [{ name: "www-authenticate", value: "Bearer" }]);
}

/** Returns 403: an operator has switched the resource off; a retry does not help. */
export function disabledAnswer(): Answer {
  return problem(403, "Forbidden", { detail: "This resource is switched off." });
}

/** Returns 500: a function of the options failed, and no framework answers for it. */
export function failedAnswer(): Answer {
  return problem(500, "Internal Server Error");
}

/** Returns 503: the store cannot answer, and `onUnavailable` is `block`. */
export function unavailableAnswer(): Answer {
  const title = "Request cannot be satisfied due to temporary server capacity constraints";
  const more = { detail: "The rate limiter cannot reach its store.", "violated-policies": [] };
  const retryAfter = { name: "retry-after", value: String(UNAVAILABLE_RETRY_SECONDS) };
  return problem(503, title, more, [retryAfter], "#temporary-reduced-capacity");
}

/** Returns the default answer with the checked parts that the option `refused` replaces. */
export function replacedAnswer(answer: Answer, replacement: RefusedAnswer | undefined): Answer {
  if (replacement === undefined) return answer;
  checkOptions("refused", replacement, "an object like { status: 429, headers: {}, body: 'wait' }");
  const { status = answer.status, headers = {}, body } = replacement;
  checkInteger("refused.status", status, 200, 599);
  checkOptions("refused.headers", headers, "an object like { 'x-reason': 'limit' }");
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value);
  const given = Object.entries(headers).map(([name, value]) => ({ name, value }));
  const named = new Set(given.map(({ name }) => name.toLowerCase()));
  const kept = answer.headers.filter(({ name }) => !named.has(name.toLowerCase()));
  if (body === undefined) return { status, headers: [...kept, ...given], body: answer.body };
  const isBytes = body instanceof Uint8Array;
  const isText = typeof body === "string";
  const type = { name: "content-type", value: isText ? TEXT_TYPE : JSON_TYPE };
  return {
    status,
    headers: [
      ...kept.filter(({ name }) => name !== type.name),
      ...(isBytes || named.has("content-type") ? [] : [type]),
      ...given,
    ],
    body: isBytes || isText ? body : jsonOf(body),
  };
}

/** Returns a body as JSON, which has no functions and symbols, no cycles and no big integers. */
function jsonOf(body: unknown): string {
  let cause: unknown;
  try {
    const json: unknown = JSON.stringify(body);
    if (typeof json === "string") return json;
  } catch (error) {
    cause = error;
  }
  const reason = `expected a text, bytes, or a value that JSON can hold, got ${show(body)}`;
  throw new ValidationError("refused.body", body, reason, { cause });
}

/** Servers refuse such a header too, some of them with a response that is half written. */
function checkHeader(name: string, value: unknown): void {
  if (!NAME_PATTERN.test(name)) {
    throw new ValidationError("refused.headers", name, `expected a header name, got ${show(name)}`);
  }
  if (FRAMING_PATTERN.test(name)) {
    const reason = "the server derives it from the body; expected other headers";
    throw new ValidationError(`refused.headers.${name}`, value, reason);
  }
  if (typeof value === "string" && VALUE_PATTERN.test(value)) return;
  throw new ValidationError(
    `refused.headers.${name}`,
    value,
    `expected a text of printable characters, got ${show(value)}`,
  );
}

/** Returns an answer with problem details; `type` names a problem of the IANA registry. */
function problem(
  status: number,
  title: string,
  more: object = {},
  headers: readonly Header[] = [],
  type?: string,
): Answer {
  const uri = type === undefined ? "about:blank" : PROBLEM_TYPES + type;
  return {
    status,
    headers: [...headers, { name: "content-type", value: PROBLEM_JSON }],
    body: JSON.stringify({ type: uri, title, status, ...more }),
  };
}
