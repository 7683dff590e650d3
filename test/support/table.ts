/** A table with one bucket and clients that share nothing but the table. */

import { setImmediate as tick } from "node:timers/promises";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { ConsumeResult } from "@zae-limiter/limiter/buckets/bucket-consumer.ts";
import type { RefundWarning } from "@zae-limiter/limiter/buckets/bucket-warning.ts";
import { DistributedBucketStore } from "@zae-limiter/limiter/buckets/distributed/distributed-bucket-store.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketConfig, type LimitSource, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { Periods } from "@zae-limiter/limiter/domain/periods.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { lehmer } from "./lehmer.ts";

/** Milli-tokens by limit name. */
export type AmountsMilli = Readonly<Record<string, number>>;

export const NAMESPACE = "ns";
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
  readonly warnings: RefundWarning[] = [];
  readonly items = new MemoryItemStore({
    clock: () => this.nowMs,
    onCall: ({ operation }) => this.calls.push(operation),
  });
  readonly #ttlMultiplier: number;
  readonly #random = lehmer(1);

  /** 0: buckets never expire. */
  constructor(ttlMultiplier = 7) {
    this.#ttlMultiplier = ttlMultiplier;
  }

  /**
   * A client with its own views, whose clock may be ahead, whose calls may be tampered with, and
   * whose zones may have other data.
   */
  client(aheadMs = 0, tamper: Partial<ItemStore> = {}, periods?: Periods): Client {
    const store = new Proxy<ItemStore>(this.items, {
      get: (items, operation: keyof ItemStore) =>
        tamper[operation] ?? (items[operation]?.bind(items) as unknown),
    });
    const random = this.#random;
    const clock = () => this.nowMs + aheadMs;
    const timer = busyTimer();
    return new Client(
      new DistributedBucketStore(
        { store, namespaceId: NAMESPACE, clock, random },
        {
          ...DYNAMODB_TRAITS,
          ttlMultiplier: this.#ttlMultiplier,
          periods,
          timeoutMs: 2000,
          timer,
          onWarning: (warning) => {
            if (warning.kind === "restore_failed") this.warnings.push(warning);
          },
        },
      ),
      timer,
    );
  }

  get item(): Item | undefined {
    return this.items.readNow(KEY);
  }
}

/** A timer whose background work runs only when a test starts it. */
export interface BusyTimer extends Timer {
  readonly isIdle: boolean;
  wake(): void;
}

/** Time passes with every read of the clock, so that an endless loop comes to an end. */
export function busyTimer(): BusyTimer {
  let elapsedMs = 0;
  const asleep = new Set<() => void>();
  return {
    nowMs: () => {
      elapsedMs += 0.1;
      return elapsedMs;
    },
    sleep: async (ms, signal, background) => {
      if (background !== true) {
        elapsedMs += ms;
        return;
      }
      await new Promise<void>((resolve) => {
        const wake = () => {
          asleep.delete(wake);
          resolve();
        };
        asleep.add(wake);
        signal?.addEventListener("abort", wake, { once: true });
      });
    },
    get isIdle() {
      return asleep.size === 0;
    },
    wake: () => {
      for (const wake of asleep) wake();
    },
  };
}

export class Client {
  constructor(
    readonly store: DistributedBucketStore,
    readonly timer: BusyTimer,
  ) {}

  /** Lets the client do what it does in the background. */
  async later(): Promise<void> {
    this.timer.wake();
    await tick();
  }

  async take(config: BucketConfig, amounts: AmountsMilli): Promise<ConsumeResult> {
    const amountsMilli = config.limits.map(({ name }) => amounts[name] ?? 0);
    return this.store.consume([this.leg(config, amountsMilli)]);
  }

  adjust(config: BucketConfig, deltas: AmountsMilli): Promise<void> {
    return this.store.adjust(adjustment(config, deltas));
  }

  refund(config: BucketConfig, amounts: AmountsMilli): Promise<void> {
    const entries = Object.entries(amounts).map(([name, amount]) => [name, -amount] as const);
    return this.store.refund(adjustment(config, Object.fromEntries(entries)));
  }

  async balances(config: BucketConfig): Promise<readonly number[]> {
    const [balances] = (await this.store.read([this.leg(config, [])])).balancesMilli;
    return balances as readonly number[];
  }

  leg(config: BucketConfig, amountsMilli: readonly number[]) {
    return { ...TARGET, config, amountsMilli, link: UNLINKED, linkIsFresh: true };
  }
}

function adjustment(config: BucketConfig, deltas: AmountsMilli) {
  return { ...TARGET, config, deltasMilli: config.limits.map(({ name }) => deltas[name] ?? 0) };
}
