/** A table with one bucket and clients that share nothing but the table. */

import type {
  BucketConfig,
  ConsumeResult,
  LimitSource,
  RestoreWarning,
} from "../../../src/buckets/bucket-store.ts";
import { DistributedBucketStore } from "../../../src/buckets/distributed/distributed-bucket-store.ts";
import { UNLINKED } from "../../../src/buckets/recorded-link.ts";
import { Limit } from "../../../src/domain/limit.ts";
import type { Timer } from "../../../src/domain/timer.ts";
import { bucketKey } from "../../../src/records/keys.ts";
import type { Item } from "../../../src/storage/item.ts";
import type { ItemStore } from "../../../src/storage/item-store.ts";
import { MemoryItemStore } from "../../../src/storage/memory/item-store.ts";

/** Milli-tokens by limit name. */
export type AmountsMilli = Readonly<Record<string, number>>;

const NAMESPACE = "ns";
export const TARGET = { entityId: "e", resource: "r", shard: 0 } as const;
export const KEY = bucketKey(NAMESPACE, TARGET.entityId, TARGET.resource, 0);

export function configOf(
  texts: readonly string[],
  source: LimitSource = "resource",
  version = source === "override" ? 0 : 1,
): BucketConfig {
  return { limits: texts.map((text) => Limit.parse(text)), source, version };
}

export class Table {
  nowMs = 1_800_000_000_000;
  readonly calls: string[] = [];
  readonly warnings: RestoreWarning[] = [];
  readonly items = new MemoryItemStore({
    clock: () => this.nowMs,
    onCall: ({ operation }) => this.calls.push(operation),
  });
  readonly #ttlMultiplier: number;
  #drawn = 1;

  /** 0: buckets never expire. */
  constructor(ttlMultiplier = 7) {
    this.#ttlMultiplier = ttlMultiplier;
  }

  /** A client with its own views, whose clock may be ahead, and whose calls may be tampered with. */
  client(aheadMs = 0, tamper: Partial<ItemStore> = {}): Client {
    const store = new Proxy<ItemStore>(this.items, {
      get: (items, operation: keyof ItemStore) =>
        tamper[operation] ?? (items[operation].bind(items) as unknown),
    });
    const random = () => {
      this.#drawn = (this.#drawn * 48_271) % 2_147_483_647;
      return this.#drawn / 2_147_483_647;
    };
    const clock = () => this.nowMs + aheadMs;
    return new Client(
      new DistributedBucketStore(
        { store, namespaceId: NAMESPACE, clock, random },
        {
          ttlMultiplier: this.#ttlMultiplier,
          timeoutMs: 2000,
          timer: busyTimer(),
          onWarning: (warning) => {
            if (warning.kind === "restore_failed") this.warnings.push(warning);
          },
        },
      ),
    );
  }

  get item(): Item | undefined {
    return this.items.readNow(KEY);
  }
}

/** Time passes whenever somebody looks, so that what goes round in circles comes to an end. */
export function busyTimer(): Timer {
  let elapsedMs = 0;
  return {
    nowMs: () => {
      elapsedMs += 0.1;
      return elapsedMs;
    },
    sleep: async (ms) => {
      elapsedMs += ms;
    },
  };
}

export class Client {
  constructor(readonly store: DistributedBucketStore) {}

  take(config: BucketConfig, amounts: AmountsMilli): Promise<ConsumeResult> {
    const amountsMilli = config.limits.map(({ name }) => amounts[name] ?? 0);
    return this.store.consume([this.leg(config, amountsMilli)]);
  }

  adjust(config: BucketConfig, deltas: AmountsMilli): Promise<void> {
    return this.store.adjust(adjustment(config, deltas));
  }

  giveBack(config: BucketConfig, amounts: AmountsMilli): Promise<void> {
    const entries = Object.entries(amounts).map(([name, amount]) => [name, -amount] as const);
    return this.store.restore(adjustment(config, Object.fromEntries(entries)));
  }

  async balances(config: BucketConfig): Promise<readonly number[]> {
    const [balances] = await this.store.read([this.leg(config, [])]);
    return balances as readonly number[];
  }

  leg(config: BucketConfig, amountsMilli: readonly number[]) {
    return { ...TARGET, config, amountsMilli, link: UNLINKED, linkIsFresh: true };
  }
}

function adjustment(config: BucketConfig, deltas: AmountsMilli) {
  return { ...TARGET, config, deltasMilli: config.limits.map(({ name }) => deltas[name] ?? 0) };
}
