/** Credentials, region and endpoint from the providers of the SDK, renewed before they expire. */

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../../../base/time.ts";

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
  /** As the header has it. */
  readonly host: string;
  readonly path: string;
}

/** The SDK renews credentials when they have less than this left. */
const RENEW_MS = 300_000;

/** What the SDK decides while it sends a request. */
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

  /** The identity; `undefined` when it must be resolved first. */
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
        : { credentials, ...(await placeOf(client)) };
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
 * Where the SDK would send a request. Endpoints come from options, variables, files and rules, so
 * the SDK makes a request of its own, which goes no further than this.
 */
async function placeOf(client: DynamoDBClient): Promise<Omit<Identity, "credentials">> {
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
