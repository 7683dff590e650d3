/** The options of opening a store. `stores` has their checks. */

import type { Random } from "../base/random.ts";
import type { Clock, Timer } from "../base/time.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import type { StoreCall } from "../storage/item-store.ts";
import type { UsageOptions } from "./usage-options.ts";

/** Credentials, or a function that fetches them, as the AWS SDK takes them. */
export type Credentials =
  | { accessKeyId: string; secretAccessKey: string; sessionToken?: string }
  | (() => Promise<{ accessKeyId: string; secretAccessKey: string; sessionToken?: string }>);

/**
 * Options for every store.
 *
 * @example
 * ```ts
 * import { Repository, type OpenOptions } from 'zae-limiter';
 * let now = 1_800_000_000_000;
 * const options: OpenOptions = { namespace: 'tests', clock: () => now };
 * const repo = await Repository.open('memory:', options);
 * console.log(repo.namespaceName); // tests
 * await repo.close();
 * ```
 */
export interface OpenOptions {
  /** Else `?namespace=` of the URL, else `ZAEL_NAMESPACE`, else `default`. */
  readonly namespace?: string;
  /** How long stored limits are remembered; 0 turns that off. Default 60. */
  readonly configCacheTtlSeconds?: number;
  /** An idle bucket is kept this many times its time to fill; 0: without end. Default 7. */
  readonly bucketTtlMultiplier?: number;
  /** Result of acquires while the store cannot answer; beats the stored setting. */
  readonly onUnavailable?: OnUnavailable;
  /** Time limit of a store operation including retries, in milliseconds. Default 2000. */
  readonly timeoutMs?: number;
  /**
   * How long a process keeps its slots without a sign of life. Default 15 on SQLite, 60 on a
   * server; the slots of a process that has ended on the same machine come back at once.
   */
  readonly slotExpirySeconds?: number;
  /** How a store that counts usage itself keeps it; `false`: not at all. Not for DynamoDB. */
  readonly usage?: false | UsageOptions;
  /** Epoch milliseconds; for tests and simulation. */
  readonly clock?: Clock;
  /** Numbers in [0, 1); for tests and simulation. */
  readonly random?: Random;
  /** Deadlines and waiting; for simulation. */
  readonly timer?: Timer;
  /** Called with every request to the store and the capacity it used. */
  readonly onCall?: (call: StoreCall) => void;
}

/** Options for Redis and Valkey. */
export interface RedisOptions extends OpenOptions {
  /** Options of TLS for the client, such as `ca`; they hold for `rediss:` and `valkeys:`. */
  readonly tls?: object;
}

/** Options for PostgreSQL. */
export interface PostgresOptions extends OpenOptions {
  /**
   * An acquire waits until its write is on the disk of the server. Without it a crash of the
   * server may forget what was consumed in the last moments, about 0.6 s. Default false.
   */
  readonly durable?: boolean;
}

/** Options of `Repository.migrate`. */
export interface MigrateOptions {
  /** A role that is given the rights to use the schema, and not to change it. */
  readonly grant?: string;
  /** Whether rows are visible by policies only; with `grant`, the role gets one. */
  readonly rls?: boolean;
  /** Time limit in milliseconds. Default 60000. */
  readonly timeoutMs?: number;
}

/** Options for DynamoDB, passed on to its client. */
export interface DynamoOptions extends OpenOptions {
  /** The region of the table; the one of the environment when absent. */
  readonly region?: string;
  /** The address of a local DynamoDB or of a private endpoint. */
  readonly endpoint?: string;
  /** Credentials, or a provider of them; the default chain of the AWS SDK when absent. */
  readonly credentials?: Credentials;
  /** A request handler of the AWS SDK. With one, all requests go through the SDK. */
  readonly requestHandler?: object;
  /** The most attempts of one request. */
  readonly maxAttempts?: number;
  /**
   * `lean` (default): requests for data are signed and sent without the AWS SDK, at a fraction of
   * its processor time. `sdk`: all requests go through the SDK.
   */
  readonly transport?: "lean" | "sdk";
  /**
   * `refuse`: opening throws `VersionMismatchError` when the deployed aggregator is older than this
   * client. Default `accept`: limits work with any, and clients may be updated before the stack.
   */
  readonly outdatedLambda?: "accept" | "refuse";
}

/** Options for a new table on DynamoDB. */
export interface CreateTableOptions extends DynamoOptions {
  /** Namespaces to register besides `default` and the one to use. */
  readonly namespaces?: readonly string[];
  /**
   * `ALL` where Python clients read usage or capacity by resource: every acquire then costs two
   * writes. `KEYS_ONLY` when absent.
   */
  readonly gsi2Projection?: "KEYS_ONLY" | "ALL";
  /**
   * The most shards that a hot bucket is split into: a power of two up to 64, the default. Python
   * clients use at most 32.
   */
  readonly maxShards?: number;
  /**
   * The release of the Python library's Lambda that the table claims to have, such as `0.17.0`:
   * without it Python clients store no session quotas, cascade policies, soft limits, bypasses,
   * quota top-ups and moves. A Python client of a newer release that opens the table then deploys
   * its own Lambda, unless an option forbids it.
   */
  readonly pythonLambdaVersion?: string;
}
