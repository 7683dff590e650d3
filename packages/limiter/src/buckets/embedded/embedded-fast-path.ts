/** The fast path of an embedded store: its table decides, by the limits that are remembered. */

import { ttlKeptSeconds } from "../bucket-ttl.ts";
import type {
  AdjustedBucket,
  CachedConfig,
  FastOutcome,
  FastPath,
  FastRequest,
} from "../fast-path.ts";
import { softNames } from "../gating.ts";
import type { FastTable } from "./fast-table.ts";

export class EmbeddedFastPath implements FastPath {
  readonly #table: FastTable;
  readonly #ttlMultiplier: number;

  constructor(table: FastTable, ttlMultiplier: number) {
    this.#table = table;
    this.#ttlMultiplier = ttlMultiplier;
  }

  consume(
    request: FastRequest,
    generation: number,
    ignoresMissing: boolean,
  ): FastOutcome | Promise<FastOutcome | undefined> | undefined {
    return this.#table.consume(request, generation, ignoresMissing);
  }

  adjust(bucket: AdjustedBucket, deltasMilli: readonly number[], acquires: number): boolean {
    if (bucket.config.bypass === true) return false;
    try {
      return this.#table.adjust(bucket, deltasMilli, acquires);
    } catch {
      // The store was closed; the slow path says so.
      return false;
    }
  }

  /** Adjusts together with other writes of this turn; `undefined`: use the slow path. */
  adjustShared(
    bucket: AdjustedBucket,
    deltasMilli: readonly number[],
    acquires: number,
  ): Promise<boolean> | undefined {
    if (bucket.config.bypass === true) return undefined;
    return this.#table.adjustShared?.(bucket, deltasMilli, acquires);
  }

  remember(entityId: string, resource: string, cached: CachedConfig): void {
    const { config, generation, untilMs } = cached;
    // The fast path knows limits that refuse, and nothing else.
    if (softNames(config) !== undefined) return;
    const rates = config.limits.map(({ rate }) => rate);
    const keepSeconds = ttlKeptSeconds(rates, this.#ttlMultiplier, config.source) ?? -1;
    const given = config.source === "override" ? config.limits : undefined;
    const fast = { config, given, generation, keepSeconds, expires: this.#table.isShared };
    this.#table.remember(entityId, resource, fast, untilMs);
  }
}
