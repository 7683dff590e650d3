/**
 * Signs bodies of webhooks as Standard Webhooks does, so that receivers can use its libraries: an
 * HMAC of the id, the time and the body, under the secret without its prefix.
 */

import { createHmac } from "node:crypto";

const PREFIX = "whsec_";

/** Returns the headers that say which message it is, when it was sent, and that we sent it. */
export function signedHeaders(
  secret: string,
  id: string,
  body: string,
  nowMs: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const key = Buffer.from(secret.slice(PREFIX.length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}
