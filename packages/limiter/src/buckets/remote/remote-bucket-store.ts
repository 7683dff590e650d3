/**
 * Buckets on a server that decides warm calls itself: one request per acquire, whatever the number
 * of its buckets. Everything else is a step of the embedded store, which leaves warm rows behind.
 */

import { type Random, randomToken } from "../../base/random.ts";
import { type Clock, Deadline, type Timer } from "../../base/time.ts";
import type { OperationResult } from "../../records/operation-record.ts";
import type { Key } from "../../storage/item.ts";
import type { WarmBuckets } from "../../storage/warm-buckets.ts";
import { Adjustments, type AdjustmentWriter, type SharedAdjustment } from "../adjustments.ts";
import type { BalanceOperation, DeletedBuckets } from "../bucket-admin.ts";
import type { ConsumeOptions, ConsumeResult } from "../bucket-consumer.ts";
import type { BucketStore } from "../bucket-store.ts";
import type { RefundWarning } from "../bucket-warning.ts";
import type { BucketId } from "../embedded/bucket-table.ts";
import type { EmbeddedBucketStore } from "../embedded/embedded-bucket-store.ts";
import {
  type Adjustment,
  type BucketConfig,
  effectiveLink,
  type Leg,
  type Link,
  sameLink,
} from "../leg.ts";
import { KnownRefusals } from "./known-refusals.ts";
import { chainId } from "./waiting-call.ts";
import { WarmCalls } from "./warm-calls.ts";
import { WarmSlots } from "./warm-slots.ts";

const TOKEN_BYTES = 15;

export interface RemoteBucketStoreOptions {
  readonly namespaceId: string;
  /** Steps, for all that is not warm. */
  readonly steps: EmbeddedBucketStore;
  readonly warm: WarmBuckets;
  readonly keyOf: (bucket: BucketId) => Key;
  readonly clock: Clock;
  /** Epoch milliseconds, where the server's own clock does not count. */
  readonly nowMs: (() => number) | undefined;
  readonly timer: Timer;
  readonly random: Random;
  readonly timeoutMs: number;
  readonly onWarning: (warning: RefundWarning) => void;
}

export class RemoteBucketStore implements BucketStore, AdjustmentWriter<string> {
  readonly embedded = false;
  readonly pythonStamps = undefined;
  readonly #options: RemoteBucketStoreOptions;
  readonly #steps: EmbeddedBucketStore;
  readonly #calls: WarmCalls;
  readonly #refusals: KnownRefusals;
  readonly #adjustments: Adjustments<string>;
  readonly #slots: WarmSlots | undefined;
  readonly #closing = new AbortController();
  /** Tokens differ even where random numbers do not, as in simulations. */
  #tokens = 0;

  constructor(options: RemoteBucketStoreOptions) {
    this.#options = options;
    this.#steps = options.steps;
    this.#refusals = new KnownRefusals(options.clock);
    this.#adjustments = new Adjustments(this, options);
    const { slots } = options.steps;
    this.#slots = slots && new WarmSlots(slots);
    this.#calls = new WarmCalls({
      ...options,
      refusals: this.#refusals,
      slots: this.#slots,
      step: (legs, consumeOptions) => this.#steps.consume(legs, consumeOptions),
      refund: (adjustment) => void this.refund(adjustment),
    });
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  get relinks(): number {
    return this.#steps.relinks;
  }

  get transfer() {
    return this.#steps.transfer;
  }

  get uncountedUsage() {
    return this.#steps.uncountedUsage;
  }

  /** Decides nothing: the buckets are elsewhere. */
  tryNow(): undefined {
    return undefined;
  }

  linkOf(...call: Parameters<EmbeddedBucketStore["linkOf"]>): Promise<Link> {
    return this.#steps.linkOf(...call);
  }

  consume(
    legs: readonly Leg[],
    options: ConsumeOptions = {},
  ): ConsumeResult | Promise<ConsumeResult> {
    const { speculative, waits } = options;
    const known = speculative === false ? undefined : this.#refusals.refusal(legs, waits);
    if (known !== undefined) return known;
    if (hasTwice(legs) || legs.some(isRelinked)) return this.#steps.consume(legs, options);
    const deadline = options.deadline ?? this.#deadline();
    const { signal, known: limits } = options;
    return this.#calls.consume(legs, { deadline, signal, known: limits });
  }

  adjust(adjustment: Adjustment): Promise<void> {
    return this.#adjustments.adjust(adjustment, this.#deadline());
  }

  refund(adjustment: Adjustment): Promise<void> {
    return this.#adjustments.refund(adjustment, this.#deadline());
  }

  newTokens(): string {
    this.#tokens += 1;
    return `${randomToken(this.#options.random, TOKEN_BYTES)}${this.#tokens.toString(36)}`;
  }

  /** Adjusts once for its token, by the server or by a step. */
  async write({ adjustment, deadline }: SharedAdjustment, token: string): Promise<void> {
    const write = (by?: Deadline) => this.#write(adjustment, token, by ?? this.#deadline());
    const slots = adjustment.entry === undefined ? undefined : this.#slots;
    await (slots?.giveBack(adjustment, write, deadline) ?? write(deadline));
    this.#refusals.forget(adjustment);
  }

  async #write(adjustment: Adjustment, token: string, deadline: Deadline): Promise<void> {
    const timeoutMs = Math.ceil(deadline.timeoutMs);
    const isDone = await this.#calls.adjust(adjustment, token, timeoutMs);
    if (isDone) this.#slots?.adjusted(adjustment);
    else await this.#steps.adjust(adjustment, { deadline, token });
  }

  /** Leaves that to the server, which knows the token. */
  async hasArrived(): Promise<boolean> {
    return false;
  }

  read(...call: Parameters<EmbeddedBucketStore["read"]>) {
    return this.#steps.read(...call);
  }

  list(...call: Parameters<EmbeddedBucketStore["list"]>) {
    return this.#steps.list(...call);
  }

  listResource(resource: string) {
    return this.#steps.listResource(resource);
  }

  listAll() {
    return this.#steps.listAll();
  }

  async reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void> {
    await this.#steps.reconfigure(entityId, resource, config);
    this.#refusals.forget({ entityId, resource });
  }

  async relink(entityId: string, link: Link): Promise<void> {
    await this.#steps.relink(entityId, link);
    this.#refusals.forgetAll();
  }

  async operate(operation: BalanceOperation): Promise<OperationResult> {
    const result = await this.#steps.operate(operation);
    this.#refusals.forget(operation);
    return result;
  }

  async deleteAll(): Promise<void> {
    await this.#steps.deleteAll();
    this.#refusals.forgetAll();
  }

  async deleteEntity(entityId: string): Promise<DeletedBuckets> {
    const deleted = await this.#steps.deleteEntity(entityId);
    this.#refusals.forgetAll();
    return deleted;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#calls.idle();
    await this.#adjustments.idle();
    await this.#steps.close();
  }

  #deadline(): Deadline {
    return new Deadline(this.#options.timer, this.#options.timeoutMs);
  }
}

/** Whether a leg was made before the policy of a stored level that it has now. */
function isRelinked({ link, config }: Leg): boolean {
  return config.cascade !== undefined && !sameLink(link, effectiveLink(link, config.cascade));
}

/** Whether two legs are the same bucket: the server would consume twice from what it read once. */
function hasTwice(legs: readonly Leg[]): boolean {
  if (legs.length < 2) return false;
  return new Set(legs.map((leg) => chainId([leg]))).size < legs.length;
}
