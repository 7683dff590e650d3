/** Signs requests, with the server's time where this machine's clock is wrong. */

import { createHmac, hash } from "node:crypto";
import aws4 from "aws4";
import { systemClock } from "../../../base/time.ts";
import { CLIENT_VERSION } from "../../../domain/version.ts";
import type { Identity } from "./identity.ts";
import type { OperationName } from "./operations.ts";

const SERVICE = "dynamodb";
const TARGET = "DynamoDB_20120810";
/** AWS refuses a signature that is five minutes off; the SDK corrects its clock from here on. */
const SKEW_MS_MAX = 240_000;
/** A SHA-256 in hexadecimal digits. */
const DIGEST_LENGTH = 64;
/** What SHA-256 takes at a time, in bytes. */
const HMAC_BLOCK = 64;
/** `20270115` of `20270115T080000Z` */
const DAY_LENGTH = 8;

interface Signed {
  /** Names and values, alternating. */
  readonly headers: string[];
  /** The time it was signed with. */
  readonly atMs: number;
}

export class Signer {
  /** How far the server is ahead of this machine, where that matters. */
  #offsetMs = 0;
  #second = -1;
  #identity: Identity | undefined;
  readonly #letterheads = new Map<OperationName, Letterhead>();

  sign(operation: OperationName, body: Buffer, identity: Identity): Signed {
    const atMs = systemClock() + this.#offsetMs;
    const second = Math.floor(atMs / 1000);
    if (second !== this.#second || identity !== this.#identity) {
      this.#second = second;
      this.#identity = identity;
      this.#letterheads.clear();
    }
    let letterhead = this.#letterheads.get(operation);
    if (letterhead === undefined) {
      letterhead = new Letterhead(operation, identity, second);
      this.#letterheads.set(operation, letterhead);
    }
    return { headers: letterhead.headersFor(body), atMs };
  }

  /** Follows the server's clock if the signature was far off; returns whether it was. */
  correct(signedAtMs: number, serverMs: number): boolean {
    if (Math.abs(serverMs - signedAtMs) < SKEW_MS_MAX) return false;
    this.#offsetMs = serverMs - systemClock();
    return true;
  }
}

/**
 * What requests of one operation have in common within a second: all but the digest of their body.
 * `aws4` writes the texts of a signature, for a request without a body. Each of them ends in a
 * digest, and only these digests are replaced from request to request.
 */
class Letterhead {
  readonly #headers: readonly string[];
  /** The request in the form that is signed, up to the digest of its body. */
  readonly #canonical: Text;
  readonly #toSign: Mac;
  /** The last header, up to the signature. */
  readonly #authorization: string;

  constructor(operation: OperationName, identity: Identity, second: number) {
    const { credentials, region, endpoint } = identity;
    const date = dateOf(second);
    const headers = {
      host: endpoint.host,
      "content-type": "application/x-amz-json-1.0",
      "user-agent": `zae-limiter/${CLIENT_VERSION}`,
      "x-amz-date": date,
      "x-amz-target": `${TARGET}.${operation}`,
    };
    const { path } = endpoint;
    const request = { method: "POST", path, service: SERVICE, region, headers };
    const signer = new aws4.RequestSigner(request, credentials);
    const { Authorization, ...others } = signer.sign().headers as Record<string, string>;
    this.#headers = Object.entries(others).flat();
    this.#authorization = withoutDigest(Authorization as string);
    this.#canonical = new Text(withoutDigest(signer.canonicalString()));
    const key = signingKey(credentials.secretAccessKey, date.slice(0, DAY_LENGTH), region);
    this.#toSign = new Mac(key, withoutDigest(signer.stringToSign()));
  }

  headersFor(body: Buffer): string[] {
    const digest = this.#canonical.digestWith(hash("sha256", body, "hex"));
    const signature = this.#toSign.digestWith(digest);
    return [...this.#headers, "authorization", this.#authorization + signature];
  }
}

/** A text that always begins alike and ends in the digits of a digest. */
class Text {
  readonly #bytes: Buffer;
  readonly #start: number;

  constructor(beginning: string) {
    this.#start = Buffer.byteLength(beginning);
    this.#bytes = Buffer.alloc(this.#start + DIGEST_LENGTH);
    this.#bytes.write(beginning);
  }

  digestWith(digest: string): string {
    this.#bytes.write(digest, this.#start, "latin1");
    return hash("sha256", this.#bytes, "hex");
  }
}

/** The same, authenticated by a key: HMAC as RFC 2104 has it, whose padded key is written once. */
class Mac {
  readonly #inner: Buffer;
  readonly #outer: Buffer;
  readonly #start: number;

  constructor(key: Buffer, beginning: string) {
    this.#start = HMAC_BLOCK + Buffer.byteLength(beginning);
    this.#inner = Buffer.alloc(this.#start + DIGEST_LENGTH);
    this.#outer = Buffer.alloc(HMAC_BLOCK + key.length);
    for (let at = 0; at < HMAC_BLOCK; at += 1) {
      this.#inner[at] = (key[at] ?? 0) ^ 0x36;
      this.#outer[at] = (key[at] ?? 0) ^ 0x5c;
    }
    this.#inner.write(beginning, HMAC_BLOCK);
  }

  digestWith(digest: string): string {
    this.#inner.write(digest, this.#start, "latin1");
    this.#outer.write(hash("sha256", this.#inner, "hex"), HMAC_BLOCK, "hex");
    return hash("sha256", this.#outer, "hex");
  }
}

/** The key of a day, a region and this service. */
function signingKey(secret: string, day: string, region: string): Buffer {
  const parts = [day, region, SERVICE, "aws4_request"];
  const mac = (key: Buffer, part: string) => createHmac("sha256", key).update(part).digest();
  return parts.reduce(mac, Buffer.from(`AWS4${secret}`));
}

function withoutDigest(text: string): string {
  return text.slice(0, -DIGEST_LENGTH);
}

/** `20270115T080000Z` */
function dateOf(second: number): string {
  return `${new Date(second * 1000).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}
