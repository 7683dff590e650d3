/** The requests to the items of buckets; each records the states that it has shown. */

import { randomToken } from "../../../base/random.ts";
import type { Deadline } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { ACQUIRES, encodeBucket } from "../../../records/bucket-item.ts";
import { type BucketName, entityKey, namespaceIdKey } from "../../../records/keys.ts";
import { refuseInactive } from "../../../records/namespaces/namespace-state.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Item, Key, Value } from "../../../storage/item.ts";
import type { Write, WriteResult } from "../../../storage/item-store.ts";
import {
  amountsByName,
  type BucketConfig,
  byPolicy,
  type Link,
  linkInRecord,
  ownerStamps,
  sumOf,
} from "../../leg.ts";
import { movesSlots } from "../../slots/slot-amounts.ts";
import type { LinkChecks } from "../consume/link-checks.ts";
import type { Member, Request, SpreadWrite } from "../consume/step.ts";
import { acquiresOf } from "../plan/consume-plan.ts";
import { newBucket } from "../plan/new-bucket.ts";
import { decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import { NO_BUCKET, type WritePlan } from "../plan/write-plan.ts";
import type { OwnSlots, Sent, SlotMove, SlotRequest } from "../slots/own-slots.ts";
import type { BucketRules } from "../table-traits.ts";
import type { BucketStates } from "./bucket-states.ts";
import type { CachedState } from "./cached-states.ts";
import { ShardItems } from "./shard-items.ts";

/** Calls share a read that is under way only if their deadlines differ by less than this. */
const JOIN_MS = 200;

/** A read that is under way. */
interface Read {
  /** A change of this process since makes the read late for calls that come after it. */
  readonly change: number;
  readonly deadline: Deadline;
  readonly state: Promise<CachedState>;
}

/** The outcome of a write: `ok` or not, with the item as it is stored then. */
export interface Written {
  readonly ok: boolean;
  readonly bucket: SeenBucket | undefined;
  /** The entry that has its slots; absent where it moves none. */
  readonly entry?: string | undefined;
  /** When the store was asked, where that was later than planned. */
  readonly askedMs?: number | undefined;
}

export class ShardRequests {
  readonly #context: RecordContext;
  readonly #states: BucketStates;
  readonly #items: ShardItems;
  readonly #links: LinkChecks;
  readonly #rules: BucketRules;
  readonly #slots: OwnSlots;
  readonly #reads = new Map<string, Read>();

  constructor(
    context: RecordContext,
    states: BucketStates,
    links: LinkChecks,
    slots: OwnSlots,
    rules: BucketRules,
  ) {
    this.#slots = slots;
    this.#context = context;
    this.#states = states;
    this.#items = new ShardItems(context, states.shards);
    this.#links = links;
    this.#rules = rules;
  }

  /** Reads one shard. Calls that come while a read is under way share it. */
  async read(name: BucketName, shard: number, deadline: Deadline): Promise<CachedState> {
    const key = this.#states.keyOf(name, shard);
    const change = this.#states.shards.changeOf(key.PK);
    const other = this.#reads.get(key.PK);
    if (other?.change === change && Math.abs(other.deadline.atMs - deadline.atMs) <= JOIN_MS) {
      return other.state;
    }
    const state = this.#read(key, deadline);
    this.#reads.set(key.PK, { change, deadline, state });
    try {
      return await state;
    } finally {
      if (this.#reads.get(key.PK)?.state === state) this.#reads.delete(key.PK);
    }
  }

  async #read(key: Key, deadline: Deadline): Promise<CachedState> {
    const isKnown = this.#states.shards.get(key.PK) !== undefined;
    const state = await this.#items.read(key, deadline.timeoutMs, { hotKey: "raise" });
    if (!isKnown) this.#links.noteFirst(key, state.bucket);
    if (state.bucket !== undefined) this.#states.correct(state.bucket);
    return state;
  }

  /** Reads the first `count` shards of a bucket, and returns those that exist. */
  async readAll(
    name: BucketName,
    count: number,
    deadline: Deadline,
  ): Promise<ReadonlyMap<number, SeenBucket>> {
    const buckets = await this.#items.readAll(name, count, deadline.timeoutMs);
    for (const bucket of buckets.values()) this.#states.correct(bucket);
    return buckets;
  }

  /** Consumes by one conditional update. Throws when nothing is known of the outcome. */
  update(
    key: Key,
    plan: WritePlan,
    deadline: Deadline,
  ): Promise<WriteResult & Pick<Written, "entry" | "askedMs">> {
    if (plan.slots !== undefined) return this.#updateSlots(key, plan, deadline);
    const { change, condition } = plan;
    const options = { timeoutMs: deadline.timeoutMs, hotKey: "raise" } as const;
    return this.#context.store.update(key, change, condition, options);
  }

  /** Consumes with slots, in the turn of the item and under an entry. */
  async #updateSlots(
    key: Key,
    plan: WritePlan,
    deadline: Deadline,
  ): Promise<WriteResult & Pick<Written, "entry" | "askedMs">> {
    const options = { hotKey: "raise" } as const;
    const sent = await this.#slots.update({ key, plan }, deadline, options);
    invariant(sent !== undefined, "an entry of this process takes slots");
    const { ok, items, entries, askedMs } = sent;
    return { ok, item: items.get(0), entry: entries[0], askedMs };
  }

  /** Creates the bucket, full except for the amounts of the members, unless it exists by now. */
  async create(
    { name, config }: Request,
    members: readonly Member[],
    atMs: number,
    deadline: Deadline,
  ): Promise<Written> {
    const { namespaceId, store, clock } = this.#context;
    const key = this.#states.keyOf(name, 0);
    // Slots need an entry, and an entry needs a bucket: it begins full, and the write comes next.
    const isEmpty = movesSlots(config, sumOf(members));
    const amountsMilli = isEmpty ? config.limits.map(() => 0) : sumOf(members);
    const owner = await this.#ownerOf(name, config, members, deadline);
    const rules = this.#rules;
    const made = newBucket({ name, config, ...owner, amountsMilli, nowMs: atMs, rules });
    const acquires = isEmpty ? 0 : acquiresOf(members);
    const item = encodeBucket(namespaceId, made);
    const counted = acquires === 0 ? item : { ...item, [ACQUIRES]: acquires };
    const observe = this.#states.shards.observe(key.PK);
    const result = await store.put(counted, [NO_BUCKET], { timeoutMs: deadline.timeoutMs });
    const bucket = result.ok ? made : decoded(result.item);
    observe(bucket, result.ok ? atMs : clock());
    if (result.ok) this.#links.noteFirst(key, made);
    return { ok: result.ok, bucket };
  }

  /**
   * Consumes from several shards in one transaction. Returns the writes with the entries of their
   * slots; `undefined`: it was not made.
   */
  async spread(
    { name, config }: Request,
    _member: Member,
    writes: readonly SpreadWrite[],
    deadline: Deadline,
  ): Promise<readonly SpreadWrite[] | undefined> {
    const { clock } = this.#context;
    const moves = writes.map(({ part, plan }) => ({
      key: this.#states.keyOf(name, part.shard),
      plan,
    }));
    const observes = moves.map(({ key }) => this.#states.shards.observe(key.PK));
    const send = (requests: readonly SlotRequest[]) => this.#transact(moves, requests, deadline);
    const sent = await this.#slots.write(moves, deadline, send);
    invariant(sent !== undefined, "entries of this process take slots");
    if (!sent.ok) {
      for (const [at, item] of sent.items) observes[at]?.(decoded(item), clock());
      return undefined;
    }
    return writes.map((write, at) => {
      const { part } = write;
      const consumed = amountsByName(config, part.amountsMilli);
      this.#states.shards.changed((moves[at] as SlotMove).key.PK, consumed);
      const entry = sent.entries[at];
      return entry === undefined ? write : { ...write, part: { ...part, entry } };
    });
  }

  async #transact(
    moves: readonly SlotMove[],
    requests: readonly SlotRequest[],
    { timeoutMs }: Deadline,
  ): Promise<Sent> {
    const { store, random } = this.#context;
    const writes = requests.map(({ change, condition }, at): Write => {
      return { update: (moves[at] as SlotMove).key, change, condition };
    });
    const result = await store.transact(writes, { token: randomToken(random), timeoutMs });
    if (result.ok) return { ok: true, items: new Map() };
    return { ok: false, items: new Map([...result.failures].map(([at, { item }]) => [at, item])) };
  }

  /** Writes new limits to a shard; returns `undefined` if they are written, or may be later. */
  async applyLimits(
    name: BucketName,
    shard: number,
    plan: WritePlan,
    deadline: Deadline,
  ): Promise<CachedState | undefined> {
    const key = this.#states.keyOf(name, shard);
    const nowMs = this.#context.clock();
    const observe = this.#states.shards.observe(key.PK);
    try {
      const options = { timeoutMs: deadline.timeoutMs };
      const { change, condition } = plan;
      const result = await this.#context.store.update(key, change, condition, options);
      const state = observe(decoded(result.item), nowMs);
      return result.ok ? undefined : state;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return undefined;
    }
  }

  /** Returns the link of a new bucket, and stamps of the Python library where a policy decides. */
  async #ownerOf(
    name: BucketName,
    { cascade }: BucketConfig,
    members: readonly Member[],
    deadline: Deadline,
  ): Promise<{ link: Link; stamps: Readonly<Record<string, Value>> }> {
    const fresh = members.find(({ linkIsFresh }) => linkIsFresh);
    if (fresh !== undefined && cascade === undefined) return { link: fresh.link, stamps: {} };
    const record = await this.#recordOf(name, deadline);
    const link = fresh?.link ?? linkInRecord(record);
    if (cascade === undefined) return { link, stamps: {} };
    // Without stamps a bucket carries the link of the record, and the policy applies on top of it.
    if (!this.#rules.isSharedWithPython) return { link: linkInRecord(record), stamps: {} };
    return {
      link: byPolicy(linkInRecord(record), cascade),
      stamps: ownerStamps(record),
    };
  }

  /**
   * Reads the record of an entity whose bucket is gone: it expired, or it was deleted. If its
   * namespace was deleted, no bucket is created. The two keys are in two requests because a policy
   * for one namespace allows the registry only in a request of its own.
   */
  async #recordOf({ entityId }: BucketName, deadline: Deadline): Promise<Item | undefined> {
    const { namespaceId, store } = this.#context;
    const { timeoutMs } = deadline;
    const [record, namespace] = await Promise.all([
      store.get(entityKey(namespaceId, entityId), { consistent: true, timeoutMs }),
      store.get(namespaceIdKey(namespaceId), { timeoutMs }),
    ]);
    refuseInactive(namespaceId, namespace);
    return record;
  }
}
