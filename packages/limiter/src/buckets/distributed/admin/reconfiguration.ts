/** Brings live shards in line with limits that were just stored. */

import { tooBusy } from "../../../domain/errors/unavailability.ts";
import { type BucketName, bucketKey } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { BucketConfig } from "../../leg.ts";
import { drive } from "../consume/driver.ts";
import { planConsume } from "../plan/consume-plan.ts";
import { decoded } from "../plan/seen-bucket.ts";
import type { WritePlan } from "../plan/write-plan.ts";
import type { CachedStates } from "../state/cached-states.ts";
import type { BucketRules } from "../table-traits.ts";

const ATTEMPTS_MAX = 50;

export class Reconfiguration {
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #rules: BucketRules;

  constructor(context: RecordContext, states: CachedStates, rules: BucketRules) {
    this.#context = context;
    this.#states = states;
    this.#rules = rules;
  }

  /** Applies the limits to a shard, if it is there and they are newer. */
  async apply(at: BucketName & { readonly shard: number }, config: BucketConfig): Promise<void> {
    const { namespaceId, store, clock } = this.#context;
    const key = bucketKey(namespaceId, at.entityId, at.resource, at.shard);
    let item = await store.get(key, { consistent: true });
    let attempts = 0;
    const decide = () => this.#plan(decoded(item), config);
    await drive(decide, async ({ change, condition }) => {
      attempts += 1;
      if (attempts > ATTEMPTS_MAX) {
        throw tooBusy("The bucket changed too often to take its new limits in time");
      }
      const result = await store.update(key, change, condition);
      // An answer that was under way meanwhile shows the bucket as it was before.
      this.#states.forget(key.PK);
      this.#states.observe(key.PK)(decoded(result.item), clock());
      item = result.ok ? undefined : result.item;
    });
  }

  #plan(
    bucket: ReturnType<typeof decoded>,
    config: BucketConfig,
  ): readonly WritePlan[] | undefined {
    if (bucket === undefined) return undefined;
    const nothing = config.limits.map(() => 0);
    const plan = planConsume(bucket, config, nothing, {
      nowMs: this.#context.clock(),
      rules: this.#rules,
      trustFull: () => true,
    });
    return plan.kind === "write" ? [plan.plan] : undefined;
  }
}
