/** Writes the records that clients need to connect: the version and the namespaces. */

import { systemRandom } from "@zae-limiter/limiter/base/random.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { DEFAULT_NAMESPACE, RESERVED_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { AUDIT_RETENTION } from "@zae-limiter/limiter/records/audit.ts";
import { inNamespace, systemConfigKey } from "@zae-limiter/limiter/records/keys.ts";
import {
  NamespaceRecords,
  NO_FOLLOWER,
} from "@zae-limiter/limiter/records/namespaces/namespaces.ts";
import type { RecordContext } from "@zae-limiter/limiter/records/record-context.ts";
import { type VersionRecord, writeVersion } from "@zae-limiter/limiter/records/version-record.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { tableAt } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";
import { openScannable } from "../migrations/open-scannable.ts";

/** The records of a table, and the items that they are. */
interface TableRecords {
  readonly store: ItemStore;
  readonly namespaces: NamespaceRecords;
  readonly clock: Clock;
}

export interface OpenRecords extends TableRecords {
  /** Migrations read the whole table. */
  readonly store: ScanStore;
  close(): Promise<void>;
}

/** Opens the records of a table, whatever its version. */
export async function openRecords(table: string, options: DynamoOptions): Promise<OpenRecords> {
  const { store, clock } = await openScannable(tableAt(table), options);
  const { random = systemRandom } = options;
  const context: Omit<RecordContext, "namespaceId"> = { store, clock, random };
  const namespaces = new NamespaceRecords(context, NO_FOLLOWER);
  return { store, namespaces, clock, close: () => store.close() };
}

/** The records of a table that a deployment wrote or found. */
export interface WrittenRecords {
  readonly version: VersionRecord;
  /** The names of all that are registered now. */
  readonly namespaces: readonly string[];
}

/** Says which Lambda serves the table, registers namespaces, and sets how long audits are kept. */
export async function writeRecords(
  { store, namespaces, clock }: TableRecords,
  wanted: {
    /** The version of the aggregator's code; `null` where there is none. */
    readonly aggregatorVersion: string | null;
    readonly namespaces: readonly string[];
    readonly auditRetentionDays: number | undefined;
    readonly maxShards?: number | undefined;
    /** Claims a Lambda of the Python library; none when absent. */
    readonly pythonLambdaVersion?: string | undefined;
    readonly updatedBy: string;
  },
): Promise<WrittenRecords> {
  const version = await writeVersion(
    store,
    {
      aggregatorVersion: wanted.aggregatorVersion,
      lambdaVersion: wanted.pythonLambdaVersion ?? null,
      updatedBy: wanted.updatedBy,
      ...(wanted.maxShards === undefined ? {} : { maxShards: wanted.maxShards }),
    },
    clock(),
  );
  const { auditRetentionDays: days } = wanted;
  // Before any registration: a new namespace starts with the setting of the table.
  if (days !== undefined) await keepAudits(store, RESERVED_NAMESPACE, days);
  await namespaces.register(DEFAULT_NAMESPACE, ...wanted.namespaces);
  const registered = await namespaces.list();
  if (days !== undefined) {
    for (const { namespaceId } of registered) await keepAudits(store, namespaceId, days);
  }
  return { version, namespaces: registered.map(({ name }) => name) };
}

async function keepAudits(store: ItemStore, namespaceId: string, days: number): Promise<void> {
  const key = systemConfigKey(namespaceId);
  await store.update(key, {
    set: { [AUDIT_RETENTION]: days },
    setIfAbsent: inNamespace(namespaceId, key.PK),
  });
}
