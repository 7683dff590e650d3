/**
 * The checkpoint and the lease of a migration: one item, kept while a migration is unfinished.
 *
 * The migrating process renews its lease with every checkpoint. A run that breaks off
 * leaves item and lease behind; when the lease is over, the next run goes on after the last
 * checkpoint. Should the first one still be alive then, it notices at its next checkpoint, and
 * until then both are harmless: see `migration.ts`.
 */

import { type Random, randomBytes } from "@zae-limiter/limiter/base/random.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { RESERVED_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { inNamespace, versionKey } from "@zae-limiter/limiter/records/keys.ts";
import {
  type Item,
  type Key,
  numberAt,
  textAt,
  valueAt,
} from "@zae-limiter/limiter/storage/item.ts";
import type {
  Change,
  Condition,
  ItemStore,
  Write,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { MigrationRunningError } from "./migration-error.ts";

const LEASE_MS = 60_000;
const OWNER_BYTES = 8;

/** Whether a migration upgrades the table or takes an upgrade back. */
export type Direction = "up" | "back";

/** How far one migration has come. */
export interface Checkpoint {
  readonly migration: string;
  readonly direction: Direction;
  /** The last item that was read. */
  readonly cursor: Key | undefined;
  readonly scanned: number;
  /** How many items each rule has changed. */
  readonly changes: Readonly<Record<string, number>>;
}

/** The content of the item. */
export interface MigrationState {
  readonly checkpoint: Checkpoint | undefined;
  readonly startedAt: string;
  readonly updatedAt: string;
}

export async function readState(store: ItemStore): Promise<MigrationState | undefined> {
  const item = await store.get(stateKey(), { consistent: true });
  return item === undefined ? undefined : decodeState(item);
}

/** The right to migrate, as long as it is renewed. */
export class MigrationLease {
  readonly #store: ItemStore;
  readonly #clock: Clock;
  readonly #owner: string;
  #state: MigrationState;

  private constructor(store: ItemStore, clock: Clock, owner: string, state: MigrationState) {
    this.#store = store;
    this.#clock = clock;
    this.#owner = owner;
    this.#state = state;
  }

  /** Takes the lease; throws while another process holds it, except for a dry run. */
  static async take(
    store: ItemStore,
    { clock, random, dryRun }: { clock: Clock; random: Random; dryRun: boolean },
  ): Promise<MigrationLease> {
    const nowMs = clock();
    const owner = Buffer.from(randomBytes(random, OWNER_BYTES)).toString("hex");
    const key = stateKey();
    const { ok, item } = await store.update(
      key,
      {
        set: { owner, ...renewed(nowMs) },
        setIfAbsent: { started_at: isoSeconds(nowMs), ...inNamespace(RESERVED_NAMESPACE, key.PK) },
      },
      dryRun ? [] : [{ is: "<=", name: "lease_until", value: nowMs, orAbsent: true }],
    );
    if (!ok) throw runningBy(item);
    return new MigrationLease(store, clock, owner, decodeState(item as Item));
  }

  get state(): MigrationState {
    return this.#state;
  }

  /** Saves the checkpoint and renews the lease. */
  async save(checkpoint: Checkpoint): Promise<void> {
    const { ok, item } = await this.#store.update(
      stateKey(),
      { set: { ...encodeCheckpoint(checkpoint), ...renewed(this.#clock()) } },
      this.#mine(),
    );
    if (!ok) throw runningBy(item);
    this.#state = decodeState(item as Item);
  }

  /** Returns the write that ends a step before the next one; it fails if the lease was lost. */
  forNextStep(): Write {
    const change: Change = {
      set: renewed(this.#clock()),
      remove: ["migration", "direction", "cursor", "scanned", "changes"],
    };
    return { update: stateKey(), change, condition: this.#mine() };
  }

  /** Returns the write that ends the run: it removes the item. */
  ending(): Write {
    return { delete: stateKey(), condition: this.#mine() };
  }

  /** Releases the lease, so that the next run can begin at once. */
  async release(): Promise<void> {
    await this.#store.update(stateKey(), { set: { lease_until: 0 } }, this.#mine());
  }

  #mine(): Condition {
    return [{ is: "=", name: "owner", value: this.#owner }];
  }
}

function runningBy(item: Item | undefined): MigrationRunningError {
  const untilMs = numberAt(item, "lease_until");
  const until = untilMs === undefined ? undefined : isoSeconds(untilMs);
  return new MigrationRunningError(textAt(item, "owner"), until);
}

function stateKey(): Key {
  return { PK: versionKey().PK, SK: "#MIGRATION" };
}

function renewed(nowMs: number) {
  return { lease_until: nowMs + LEASE_MS, updated_at: isoSeconds(nowMs) };
}

function encodeCheckpoint({ migration, direction, cursor, scanned, changes }: Checkpoint) {
  return {
    migration,
    direction,
    cursor: cursor === undefined ? null : { PK: cursor.PK, SK: cursor.SK },
    scanned,
    changes,
  };
}

function decodeState(item: Item): MigrationState {
  const migration = textAt(item, "migration");
  return {
    checkpoint: migration === undefined ? undefined : decodeCheckpoint(item, migration),
    startedAt: textAt(item, "started_at") ?? "",
    updatedAt: textAt(item, "updated_at") ?? "",
  };
}

function decodeCheckpoint(item: Item, migration: string): Checkpoint {
  const cursor = valueAt(item, "cursor") as Key | null | undefined;
  return {
    migration,
    direction: textAt(item, "direction") === "back" ? "back" : "up",
    cursor: cursor ?? undefined,
    scanned: numberAt(item, "scanned") ?? 0,
    changes: (valueAt(item, "changes") ?? {}) as Record<string, number>,
  };
}
