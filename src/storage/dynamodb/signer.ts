/** Signs requests, with the server's time where this machine's clock is wrong. */

import aws4 from "aws4";
import { systemClock } from "../../domain/clock.ts";
import { CLIENT_VERSION } from "../../domain/version.ts";
import type { Identity } from "./identity.ts";
import type { OperationName } from "./operations.ts";

const SERVICE = "dynamodb";
const TARGET = "DynamoDB_20120810";
/** AWS refuses a signature that is five minutes off; the SDK begins to worry here. */
const SKEW_MS_MAX = 240_000;

export interface Signed {
  readonly headers: Record<string, string>;
  /** The time it was signed with. */
  readonly atMs: number;
}

export class Signer {
  /** How far the server is ahead of this machine, where that matters. */
  #offsetMs = 0;
  #second = -1;
  #date = "";

  sign(
    operation: OperationName,
    body: Buffer,
    { credentials, region, endpoint }: Identity,
  ): Signed {
    const atMs = systemClock() + this.#offsetMs;
    const request = aws4.sign(
      {
        method: "POST",
        path: endpoint.path,
        service: SERVICE,
        region,
        body,
        headers: {
          host: endpoint.host,
          "content-type": "application/x-amz-json-1.0",
          "user-agent": `zae-limiter/${CLIENT_VERSION}`,
          "x-amz-date": this.#dateAt(atMs),
          "x-amz-target": `${TARGET}.${operation}`,
        },
      },
      credentials,
    );
    return { headers: request.headers as Record<string, string>, atMs };
  }

  /** Follows the server's clock from now on, if the signature was far off; says whether it was. */
  correct(signedAtMs: number, serverMs: number): boolean {
    if (Math.abs(serverMs - signedAtMs) < SKEW_MS_MAX) return false;
    this.#offsetMs = serverMs - systemClock();
    return true;
  }

  /** `20270115T080000Z`; most requests are signed in the same second as the one before. */
  #dateAt(ms: number): string {
    const second = Math.floor(ms / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#date = `${new Date(second * 1000).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
    }
    return this.#date;
  }
}
