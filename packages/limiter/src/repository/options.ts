/** What can be chosen when a store is opened. */

import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Random } from "../base/random.ts";
import type { Timer } from "../base/timer.ts";
import { checkInteger, checkOptions, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/errors/unavailability.ts";
import { checkNamespace } from "../domain/names.ts";
import { checkMaxShards, checkRelease, type NewVersion } from "../records/version-record.ts";
import type { StoreCall } from "../storage/item-store.ts";
import { checkEndpoint } from "./store-url.ts";
import { checkUsageOptions, type UsageOptions } from "./usage-options.ts";

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
  /** What acquires do while the store cannot answer; beats the stored setting. */
  readonly onUnavailable?: OnUnavailable;
  /** Time limit of a store operation including retries, in milliseconds. Default 2000. */
  readonly timeoutMs?: number;
  /** What `memory:` and `sqlite:` keep of usage; `false`: nothing. Not for DynamoDB. */
  readonly usage?: false | UsageOptions;
  /** Epoch milliseconds; for tests and simulation. */
  readonly clock?: Clock;
  /** Numbers in [0, 1); for tests and simulation. */
  readonly random?: Random;
  /** Deadlines and waiting; for simulation. */
  readonly timer?: Timer;
  /** Told of every request to the store, with the capacity it used. */
  readonly onCall?: (call: StoreCall) => void;
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
   * its own Lambda, unless it is told not to.
   */
  readonly pythonLambdaVersion?: string;
}

const OPEN_OPTIONS = {
  namespace: "string",
  configCacheTtlSeconds: "number",
  bucketTtlMultiplier: "number",
  onUnavailable: "string",
  timeoutMs: "number",
  usage: "any",
  clock: "function",
  random: "function",
  timer: "object",
  onCall: "function",
} as const satisfies Record<keyof OpenOptions, string>;

const DYNAMO_OPTIONS = {
  region: "string",
  endpoint: "string",
  credentials: "any",
  requestHandler: "object",
  maxAttempts: "number",
  transport: "string",
  outdatedLambda: "string",
} as const satisfies Record<Exclude<keyof DynamoOptions, keyof OpenOptions>, string>;

/** The names of all options of `open`, on any store. */
export const STORE_OPTIONS: readonly string[] = [
  ...Object.keys(OPEN_OPTIONS),
  ...Object.keys(DYNAMO_OPTIONS),
];

/** Refuses unknown names (most are typos), wrong types and numbers out of range. */
export function checkOpenOptions(options: DynamoOptions, dynamodb: boolean): void {
  checkOptions("options", options, "an object of options");
  const accepted: Record<string, string> = {
    ...OPEN_OPTIONS,
    ...(dynamodb ? DYNAMO_OPTIONS : {}),
  };
  for (const [name, value] of Object.entries(options)) {
    const type = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
    if (type === undefined) throw unknownOption(name, value, Object.keys(accepted));
    if (value !== undefined && type !== "any" && typeof value !== type) {
      throw new ValidationError(name, value, `expected a ${type}, got ${show(value)}`);
    }
  }
  checkUsageOptions(options.usage, dynamodb);
  checkNotNegative("configCacheTtlSeconds", options.configCacheTtlSeconds);
  checkNotNegative("bucketTtlMultiplier", options.bucketTtlMultiplier);
  if (options.timeoutMs !== undefined) {
    checkInteger("timeoutMs", options.timeoutMs, 1, 3_600_000);
  }
  if (options.maxAttempts !== undefined) checkInteger("maxAttempts", options.maxAttempts, 1, 100);
  if (options.onUnavailable !== undefined) checkOnUnavailable(options.onUnavailable);
  if (options.endpoint !== undefined) checkEndpoint(options.endpoint);
  const { outdatedLambda = "accept" } = options;
  if (outdatedLambda !== "accept" && outdatedLambda !== "refuse") {
    const reason = `expected "accept" or "refuse", got ${show(outdatedLambda)}`;
    throw new ValidationError("outdatedLambda", outdatedLambda, reason);
  }
}

const PROJECTIONS: readonly unknown[] = ["KEYS_ONLY", "ALL"];

/** The options of a new table, by where they go. */
export interface CheckedTableOptions {
  readonly namespaces: readonly string[];
  /** What its version record says. */
  readonly version: NewVersion;
  readonly indexes: Pick<CreateTableOptions, "gsi2Projection">;
  readonly connection: DynamoOptions;
}

/** Checks the options of a new table; it has no namespaces when none are given. */
export function checkCreateTableOptions(options: CreateTableOptions): CheckedTableOptions {
  checkOptions("options", options, "an object of options");
  const { namespaces = [], gsi2Projection, maxShards, ...others } = options;
  const { pythonLambdaVersion, ...connection } = others;
  if (maxShards !== undefined) checkMaxShards(maxShards);
  if (pythonLambdaVersion !== undefined) checkRelease("pythonLambdaVersion", pythonLambdaVersion);
  if (gsi2Projection !== undefined && !PROJECTIONS.includes(gsi2Projection)) {
    const reason = `expected "KEYS_ONLY" or "ALL", got ${show(gsi2Projection)}`;
    throw new ValidationError("gsi2Projection", gsi2Projection, reason);
  }
  checkOpenOptions(connection, true);
  if (!Array.isArray(namespaces)) {
    const reason = `expected an array, got ${show(namespaces)}`;
    throw new ValidationError("namespaces", namespaces, reason);
  }
  for (const namespace of namespaces) checkNamespace(namespace);
  const version = defined({ maxShards, pythonLambdaVersion });
  return { namespaces, version, indexes: defined({ gsi2Projection }), connection };
}

function unknownOption(name: string, value: unknown, accepted: readonly string[]): ValidationError {
  const where = Object.hasOwn(DYNAMO_OPTIONS, name) ? "is for DynamoDB only" : "is not an option";
  return new ValidationError(name, value, `"${name}" ${where}; expected ${accepted.join(", ")}`);
}

function checkNotNegative(name: string, value: number | undefined): void {
  if (value !== undefined && !(Number.isFinite(value) && value >= 0)) {
    throw new ValidationError(name, value, `expected a number >= 0, got ${show(value)}`);
  }
}
