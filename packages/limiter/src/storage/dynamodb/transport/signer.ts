/**
 * Signs requests: with credentials, region and endpoint from the providers of the SDK, and with the
 * server's time where this machine's clock is wrong.
 */

import { createHmac, hash } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import aws4 from "aws4";
import { systemClock } from "../../../base/time.ts";
import { CLIENT_VERSION } from "../../../domain/version.ts";
import type { OperationName } from "./operations.ts";

const SERVICE = "dynamodb";
const TARGET = "DynamoDB_20120810";
/** AWS refuses a signature that is five minutes off; the SDK corrects its clock from here on. */
const SKEW_MS_MAX = 240_000;
/** Number of hexadecimal digits of a SHA-256. */
const DIGEST_LENGTH = 64;
/** Length of `20270115` in `20270115T080000Z`. */
const DAY_LENGTH = 8;

interface Signed {
  /** Names and values, alternating. */
  readonly headers: string[];
  /** Time that it was signed with, in epoch milliseconds. */
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
 * Keeps the parts that requests of one operation share within a second: all but their digests.
 * `aws4` writes the texts of a signature, for a request without a body. Each of them ends in a
 * digest, and only these digests are replaced from request to request.
 */
class Letterhead {
  readonly #headers: readonly string[];
  /** The request in the form that is signed, up to the digest of its body. */
  readonly #canonical: string;
  readonly #key: Buffer;
  /** The text that is signed, up to the digest of the canonical request. */
  readonly #toSign: string;
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
    this.#canonical = withoutDigest(signer.canonicalString());
    this.#key = signingKey(credentials.secretAccessKey, date.slice(0, DAY_LENGTH), region);
    this.#toSign = withoutDigest(signer.stringToSign());
  }

  headersFor(body: Buffer): string[] {
    const digest = hash("sha256", this.#canonical + hash("sha256", body, "hex"), "hex");
    const signature = createHmac("sha256", this.#key)
      .update(this.#toSign + digest)
      .digest("hex");
    return [...this.#headers, "authorization", this.#authorization + signature];
  }
}

function signingKey(secret: string, day: string, region: string): Buffer {
  const parts = [day, region, SERVICE, "aws4_request"];
  const mac = (key: Buffer, part: string) => createHmac("sha256", key).update(part).digest();
  return parts.reduce(mac, Buffer.from(`AWS4${secret}`));
}

function withoutDigest(text: string): string {
  return text.slice(0, -DIGEST_LENGTH);
}

/** Returns a time such as `20270115T080000Z`. */
function dateOf(second: number): string {
  return `${new Date(second * 1000).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}

export interface Identity {
  readonly credentials: AwsCredentials;
  /** The region that signatures name. */
  readonly region: string;
  readonly endpoint: Endpoint;
}

interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly accountId?: string;
  readonly expiration?: Date;
}

interface Endpoint {
  readonly origin: string;
  /** The value of the header `host`. */
  readonly host: string;
  readonly path: string;
}

/** The SDK renews credentials when they have less than this left. */
const RENEW_MS = 300_000;

/** The address that the SDK has chosen for a request. */
interface SdkRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
}

interface SdkContext {
  readonly endpointV2?: {
    readonly properties?: { readonly authSchemes?: readonly { readonly signingRegion?: string }[] };
  };
}

export class Identities {
  readonly #client: () => Promise<DynamoDBClient>;
  #identity: Identity | undefined;
  #resolving: Promise<Identity> | undefined;

  constructor(client: () => Promise<DynamoDBClient>) {
    this.#client = client;
  }

  /** Credentials, region and endpoint; `undefined` when they must be resolved first. */
  get current(): Identity | undefined {
    const expiration = this.#identity?.credentials.expiration;
    if (expiration === undefined) return this.#identity;
    return expiration.getTime() - systemClock() > RENEW_MS ? this.#identity : undefined;
  }

  /** Asks the providers; concurrent callers share the answer. */
  resolve(): Promise<Identity> {
    this.#resolving ??= this.#resolve(false).finally(() => {
      this.#resolving = undefined;
    });
    return this.#resolving;
  }

  /** Returns other credentials than those that were refused as too old; `undefined` without any. */
  async renew(refused: Identity): Promise<Identity | undefined> {
    const known = this.#identity;
    if (known !== undefined && !sameCredentials(known, refused)) return known;
    const renewed = await this.#resolve(true);
    return sameCredentials(renewed, refused) ? undefined : renewed;
  }

  async #resolve(forceRefresh: boolean): Promise<Identity> {
    const client = await this.#client();
    const provider = client.config.credentials as (options: {
      forceRefresh?: boolean;
    }) => Promise<AwsCredentials>;
    const credentials = await provider(forceRefresh ? { forceRefresh } : {});
    const known = this.#identity;
    // An endpoint may carry the number of the account.
    this.#identity =
      known !== undefined && known.credentials.accountId === credentials.accountId
        ? { ...known, credentials }
        : { credentials, ...(await locate(client)) };
    return this.#identity;
  }
}

function sameCredentials(left: Identity, right: Identity): boolean {
  return (
    left.credentials.accessKeyId === right.credentials.accessKeyId &&
    left.credentials.secretAccessKey === right.credentials.secretAccessKey &&
    left.credentials.sessionToken === right.credentials.sessionToken
  );
}

/**
 * Returns the region and the endpoint that the SDK would use. Endpoints come from options,
 * variables, files and rules, so the SDK makes a request of its own, which goes no further.
 */
async function locate(client: DynamoDBClient): Promise<Omit<Identity, "credentials">> {
  const { GetItemCommand } = await import("./sdk-data.ts");
  const command = new GetItemCommand({ TableName: "none", Key: { PK: { S: "none" } } });
  let found: { request: SdkRequest; context: SdkContext } | undefined;
  command.middlewareStack.add(
    (_next, context) => async (args) => {
      found = { request: args.request as SdkRequest, context: context as SdkContext };
      return { response: undefined, output: { $metadata: {} } };
    },
    { step: "build", priority: "low", name: "zaeLimiterPlace" },
  );
  await client.send(command);
  if (found === undefined) throw new Error("The AWS SDK did not return an endpoint");
  const { protocol, hostname, port, path } = found.request;
  const host = port === undefined ? hostname : `${hostname}:${port}`;
  const [scheme] = found.context.endpointV2?.properties?.authSchemes ?? [];
  const region = scheme?.signingRegion ?? (await client.config.region());
  return { region, endpoint: { origin: `${protocol}//${host}`, host, path } };
}
