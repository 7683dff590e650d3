/** The parts that repositories of one open store share: its client, its caches, its buckets. */

import { defined } from "../base/defined.ts";
import { entryOf } from "../base/entry.ts";
import { shorten } from "../base/shorten.ts";
import { systemTimer } from "../base/time.ts";
import { AlertWatch } from "../buckets/alert-watch.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { BucketWarning } from "../buckets/bucket-warning.ts";
import { NamespaceNotFoundError } from "../domain/errors/errors.ts";
import { VersionMismatchError } from "../domain/errors/version-errors.ts";
import { CLIENT_VERSION, checkCompatibility, WITHOUT_NAMESPACES } from "../domain/version.ts";
import { ConfigCache } from "../records/config/config-cache.ts";
import { versionKey } from "../records/keys.ts";
import type { Namespace } from "../records/namespaces/namespace-item.ts";
import { NamespaceRecords } from "../records/namespaces/namespaces.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { RecordWarning } from "../records/record-warning.ts";
import {
  decodeVersion,
  incompatibleError,
  incompatibleIn,
  unprefixedVersionKey,
  type VersionRecord,
} from "../records/version-record.ts";
import type { ItemStore } from "../storage/item-store.ts";
import type { Backend } from "./backend.ts";
import { eventChannel } from "./event-channel.ts";
import type { RepositoryListener } from "./internals.ts";
import type { OpenOptions } from "./options.ts";
import { SHARED_OPTIONS } from "./stores/shared-options.ts";

export const TIMEOUT_MS = SHARED_OPTIONS.timeoutMs.default;

/** The parts that repositories of one open store share. */
export interface Shared {
  readonly backend: Backend;
  readonly options: OpenOptions;
  readonly namespaces: NamespaceRecords;
  /** Listeners by namespace: each is called for its own namespace only. */
  readonly listeners: Map<string, Set<RepositoryListener>>;
  /** One per namespace, whichever repository uses it. */
  readonly buckets: Map<string, BucketStore>;
  /** One per namespace, as the buckets. */
  readonly alerts: Map<string, AlertWatch>;
  /** One cache per namespace, whichever repository uses it. */
  readonly caches: Map<string, ConfigCache>;
  /** The most shards of a bucket, by the version record; `undefined` before it was read. */
  maxShards: number | undefined;
  /** Clients of the Python library use the table. */
  keepsShards: boolean;
}

export function sharedOver(backend: Backend, options: OpenOptions): Shared {
  const onWarning = (warning: RecordWarning) => warn(new Set(), warning);
  const context = recordContext(backend, options, onWarning);
  const namespaces = new NamespaceRecords(context, {
    deleteBuckets: (namespaceId) => bucketsOf(shared, namespaceId).deleteAll(),
    stateChanged: (namespaceId) => shared.caches.get(namespaceId)?.clear(),
  });
  const shared: Shared = {
    backend,
    options,
    namespaces,
    listeners: new Map(),
    buckets: new Map(),
    alerts: new Map(),
    caches: new Map(),
    maxShards: undefined,
    keepsShards: false,
  };
  return shared;
}

export async function closeShared({ backend, buckets, alerts }: Shared): Promise<void> {
  await Promise.all([...alerts.values()].map((watch) => watch.close()));
  await Promise.all([...buckets.values()].map((store) => store.close()));
  await backend.store.close();
}

export async function activeNamespace({ namespaces }: Shared, name: string): Promise<Namespace> {
  const namespace = await namespaces.get(name);
  if (namespace === undefined) throw new NamespaceNotFoundError(name);
  return namespace;
}

export function recordContext(
  backend: Backend,
  options: OpenOptions,
  onWarning?: (warning: RecordWarning) => void,
): Omit<RecordContext, "namespaceId"> {
  return {
    store: backend.store,
    clock: backend.clock,
    random: options.random ?? backend.random,
    onWarning,
  };
}

/** Returns the records of one namespace, whose warnings reach the limiters that listen there. */
export function recordsOf(shared: Shared, namespaceId: string): RecordContext {
  const listeners = listenersOf(shared, namespaceId);
  const onWarning = (warning: RecordWarning) => warn(listeners, warning, namespaceId);
  return { ...recordContext(shared.backend, shared.options, onWarning), namespaceId };
}

export function cacheOf(shared: Shared, context: RecordContext): ConfigCache {
  const { caches, options } = shared;
  const ttlSeconds = options.configCacheTtlSeconds ?? SHARED_OPTIONS.configCacheTtlSeconds.default;
  const { namespaceId, clock } = context;
  return entryOf(caches, namespaceId, () => new ConfigCache({ ttlSeconds, clock }));
}

/** Returns the buckets of a namespace; all repositories on it share what they have seen. */
export function bucketsOf(shared: Shared, namespaceId: string): BucketStore {
  const { backend, options, buckets } = shared;
  const known = buckets.get(namespaceId);
  if (known !== undefined) return known;
  const context = recordsOf(shared, namespaceId);
  const listeners = listenersOf(shared, namespaceId);
  const opened = backend.openBuckets(context, {
    ttlMultiplier: options.bucketTtlMultiplier ?? SHARED_OPTIONS.bucketTtlMultiplier.default,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    timer: options.timer ?? systemTimer,
    ...defined({ maxShards: shared.maxShards, slotExpirySeconds: options.slotExpirySeconds }),
    keepsShards: shared.keepsShards,
    onWarning: (warning) => warn(listeners, warning, namespaceId),
    onSplit: (notice) => {
      for (const listener of listeners) listener.onSplit?.(notice);
      publish(namespaceId, { type: "split", ...notice });
    },
  });
  buckets.set(namespaceId, opened);
  return opened;
}

/** Returns what writes the alerts of a namespace, shared by all repositories on it. */
export function alertsOf(shared: Shared, namespaceId: string): AlertWatch {
  return entryOf(shared.alerts, namespaceId, () => {
    const listeners = listenersOf(shared, namespaceId);
    return new AlertWatch(recordsOf(shared, namespaceId), bucketsOf(shared, namespaceId), {
      timer: shared.options.timer ?? systemTimer,
      onWarning: (warning) => warn(listeners, warning, namespaceId),
      onAlert: (alert) => {
        for (const listener of listeners) listener.onAlert?.(alert);
        publish(namespaceId, { type: "alert", alert });
      },
    });
  });
}

/** Returns the listeners of a namespace, shared by all repositories on it. */
export function listenersOf({ listeners }: Shared, namespaceId: string): Set<RepositoryListener> {
  return entryOf(listeners, namespaceId, () => new Set());
}

/** Publishes an event of a namespace on the channel, whichever limiter it is of. */
function publish(namespaceId: string | undefined, event: object): void {
  if (eventChannel.hasSubscribers) eventChannel.publish({ namespaceId, event });
}

/** Sends a warning to the limiters that listen, or else to the process. */
function warn(
  listeners: ReadonlySet<RepositoryListener>,
  warning: BucketWarning | RecordWarning,
  namespaceId?: string,
): void {
  publish(namespaceId, { type: "warning", warning });
  const heard = [...listeners].filter((listener) => listener.onWarning !== undefined);
  for (const listener of heard) listener.onWarning?.(warning);
  if (heard.length > 0) return;
  if (warning.kind === "shards_exhausted") {
    process.emitWarning(
      `The bucket of ${warning.entityId} for ${warning.resource} has ${warning.shardCount} shards, ` +
        "the most it may have: more traffic will be throttled. Divide the entity or the resource",
      { code: "ZAEL_SHARDS_EXHAUSTED" },
    );
    return;
  }
  if (warning.kind === "alert_failed") {
    const { entityId, resource, cause } = warning;
    process.emitWarning(
      `Could not write an alert of ${entityId} for ${resource}: the next call that sees it tries`,
      { code: "ZAEL_ALERT_FAILED", detail: String(cause) },
    );
    return;
  }
  if (warning.kind === "slots_lost") {
    process.emitWarning(
      `This process gave no sign of life for too long: other processes may use ${warning.slots} ` +
        "slots that its calls hold, so that more calls than slots may run until these end",
      { code: "ZAEL_SLOTS_LOST", detail: `It was the holder ${warning.holderId}` },
    );
    return;
  }
  if (warning.kind === "foreign_items") {
    const { dropped, index, partition, example } = warning;
    process.emitWarning(
      `Left out ${dropped} items of ${index} at ${quoted(partition)}: they do not belong there`,
      { code: "ZAEL_FOREIGN_ITEMS", detail: `The first one is stored at ${quoted(example.PK)}` },
    );
    return;
  }
  if (warning.kind === "damaged_record") {
    process.emitWarning(warning.cause.message, { code: warning.cause.code });
    return;
  }
  process.emitWarning(
    `Could not refund ${amountsText(warning.amountsMilli)} to ${warning.entityId} for ` +
      `${warning.resource}: it stays consumed`,
    { code: "ZAEL_RESTORE_FAILED", detail: String(warning.cause) },
  );
}

/** Returns the amounts as `500 tpm and 1 rpm`. */
function amountsText(amountsMilli: Readonly<Record<string, number>>): string {
  const amounts = Object.entries(amountsMilli);
  return amounts.map(([name, milli]) => `${milli / 1000} ${name}`).join(" and ");
}

/** Returns a text that another writer chose, fit for a log. */
function quoted(text: string): string {
  return JSON.stringify(shorten(text));
}

/**
 * Refuses only what makes working together impossible; an older Lambda is accepted. Returns the
 * version record, which is `undefined` where none was written.
 */
export async function refuseIncompatible({ store }: Backend): Promise<VersionRecord | undefined> {
  const item = await store.get(versionKey(), { consistent: true });
  if (item === undefined) {
    await refuseUnprefixed(store);
    return undefined;
  }
  const found = incompatibleIn(item);
  if (found !== undefined) throw incompatibleError(found);
  return decodeVersion(item);
}

/** Throws when the aggregator of the table is older than this client; a table may have none. */
export function refuseOutdatedLambda({ name }: Backend, version: VersionRecord | undefined): void {
  if (version?.aggregatorVersion === undefined) return;
  const { schemaVersion, clientMinVersion, aggregatorVersion } = version;
  const { needsLambdaUpdate } = checkCompatibility({
    client: CLIENT_VERSION,
    schema: schemaVersion,
    clientMin: clientMinVersion,
    lambda: aggregatorVersion,
  });
  if (!needsLambdaUpdate) return;
  throw new VersionMismatchError({
    clientVersion: CLIENT_VERSION,
    schemaVersion,
    lambdaVersion: aggregatorVersion,
    message: `Update the Lambda with: zae-limiter stack upgrade --name ${name} --lambda-only`,
    canAutoUpdate: true,
  });
}

/** Refuses a table from before there were namespaces, which is not an empty one. */
async function refuseUnprefixed(store: ItemStore): Promise<void> {
  const item = await store.get(unprefixedVersionKey(), { consistent: true });
  if (item === undefined) return;
  const { schemaVersion } = decodeVersion(item);
  throw incompatibleError({ schemaVersion, message: WITHOUT_NAMESPACES.message });
}
