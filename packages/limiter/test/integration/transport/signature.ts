/** Checks a signature as AWS does, by its documentation and without any library. */

import { createHash, createHmac } from "node:crypto";
import type { FakeRequest } from "@zae-limiter/test-engines/fake-dynamodb.ts";

/** Throws when the request is not signed by the holder of the secret. */
export function checkSignature({ headers, text }: FakeRequest, secret: string): void {
  const [, scope = "", names = "", signature] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(
      headers.authorization ?? "",
    ) ?? [];
  const signed = names.split(";");
  for (const name of ["host", "x-amz-date", "x-amz-target"]) {
    if (!signed.includes(name)) throw new Error(`${name} is not signed`);
  }
  const lines = signed.map((name) => `${name}:${String(headers[name]).trim()}\n`).join("");
  const canonical = ["POST", "/", "", lines, names, hash(text)].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hash(canonical)].join("\n");
  const key = scope.split("/").reduce((parent, part) => hmac(parent, part), `AWS4${secret}` as Key);
  const expected = hmac(key, toSign).toString("hex");
  if (signature !== expected) throw new Error(`the signature is ${signature}, not ${expected}`);
}

type Key = string | Buffer;

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: Key, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
