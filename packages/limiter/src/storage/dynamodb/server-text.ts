/** Messages of servers, as errors repeat them. */

/** More than AWS needs to say which permission is missing where. */
const SHOWN_MAX = 400;

/**
 * Fits what may be a credential: ids and parts of a signature by their form, and long runs of
 * base64 or hex digits, which secret keys, session tokens and signatures are.
 */
const CREDENTIALS =
  /\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\b(?:Credential|Signature)=[^\s,]+|[A-Za-z0-9+/=]{40,}/g;

/**
 * Returns a message of a server on one line, shortened, without anything that looks like a
 * credential: a server that repeats request headers must not get a session token into logs.
 */
export function serverText(message: string): string {
  const line = message.replace(CREDENTIALS, "[hidden]").replace(/\s+/g, " ").trim();
  return line.length <= SHOWN_MAX ? line : `${[...line].slice(0, SHOWN_MAX).join("")}...`;
}

/** Changes an error of a server in the same way, so that whatever prints it repeats no more. */
export function withServerText<Thrown>(error: Thrown): Thrown {
  if (!(error instanceof Error)) return error;
  const { message, stack = "" } = error;
  const text = serverText(message);
  if (text === message) return error;
  error.message = text;
  error.stack = stack.replace(message, () => text);
  return error;
}
