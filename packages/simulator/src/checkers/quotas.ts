/**
 * Ideal quotas and sessions: a balance and the end of the period in force, for each shard, to the
 * milli-token. The calendar of the library has no part in it.
 *
 * A period is opened at or after the stored end, by the clock of the process that opens it, with
 * the whole share of the allowance; it ends at the first edge of that process after now and after
 * the stored end and half a period. A session begins with a consumption, and all shards are in one.
 * Inside a period nothing accrues, and a refund of what was consumed before it is dropped.
 */

import type { TableCall } from "@zae-limiter/testing/table/call.ts";
import type { LimitOfShard, QuotaOfShard, ShardImage } from "./bucket-image.ts";
import { type BucketLanding, type DebtOf, shardsMadeBy } from "./ledger.ts";
import { PeriodBooks } from "./period-books.ts";
import { edgeAfter, endOfNext, type QuotaEdges, resetsUntil } from "./quota-edges.ts";
import { shareRate, smaller } from "./share.ts";
import { Violation } from "./violation.ts";

interface Level {
  readonly tokens: bigint;
  readonly endMs: number;
}

interface QuotaLimit extends LimitOfShard {
  readonly quota: QuotaOfShard;
}

/** One limit of a shard that was there before a write. */
interface Change {
  readonly landing: BucketLanding;
  readonly process: number;
  readonly before: ShardImage;
  readonly after: ShardImage;
  readonly was: QuotaLimit;
  readonly limit: QuotaLimit;
  readonly level: Level;
  /** New shards of a split. */
  readonly made: readonly ShardImage[];
}

export class Quotas {
  readonly #shards = new Map<string, Map<string, Level>>();
  readonly #books = new PeriodBooks();
  readonly #edges: QuotaEdges;
  readonly #debtOf: DebtOf;
  /** How often a period was opened. */
  openings = 0;

  constructor(edges: QuotaEdges, debtOf: DebtOf) {
    this.#edges = edges;
    this.#debtOf = debtOf;
  }

  landed(call: TableCall, landings: readonly BucketLanding[]): void {
    for (const landing of landings) {
      if (landing.after === undefined) this.#shards.delete(landing.before?.id ?? "");
      else if (landing.merged !== undefined) this.#merged(landing, landing.after);
      else if (landing.before !== undefined) this.#changed(call, landing, landings);
      else if (landing.after.shard === 0) this.#created(call, landing, landing.after);
    }
  }

  #changed(call: TableCall, landing: BucketLanding, all: readonly BucketLanding[]): void {
    const { before, after } = landing as { before: ShardImage; after: ShardImage };
    const made = shardsMadeBy(landing, all);
    for (const limit of quotasOf(after)) {
      const was = quotasOf(before).find(({ name }) => name === limit.name);
      const level = this.#levels(after).get(limit.name);
      if (was === undefined || level === undefined) {
        this.#start(call, landing, after, limit);
        continue;
      }
      const { process } = call;
      const change = { landing, process, before, after, was, limit, level, made };
      const opens = limit.quota.endMs !== level.endMs;
      if (opens) this.#judgeOpening(call, change);
      this.#follow(change, opens);
    }
  }

  /** Compares a balance with the ideal one, and divides it where the write splits the shard. */
  #follow(change: Change, opens: boolean): void {
    const { after, before, was, limit, level, made } = change;
    const old = shareRate(was, before.shard, before.count).capacity;
    const more = shareRate(limit, before.shard, before.count).capacity - old;
    const { endMs } = limit.quota;
    const parts = made.map((shard) => quotasOf(shard).find(({ name }) => name === limit.name));
    // All shards of a split keep the balance of a session that is over: it says nothing.
    const over = limit.quota.sessionMs !== undefined && after.epochMs >= endMs;
    const idle = over && made.length > 0;
    const stored = parts.reduce((sum, part) => sum + (part?.tokens ?? 0n), limit.tokens);
    const { tokens } = level;
    const begun = (opens ? old + this.#carriedInto(change, stored - old - more) : tokens) + more;
    const ideal = this.#charge(change, { opens, idle, begun, stored });
    const debt = this.#debtOf(after.bucket, limit.name);
    if (!idle && stored !== ideal) this.#refuse(after, limit, stored, ideal);
    if (stored < -debt) this.#refuse(after, limit, stored, -debt);
    this.#keep(change, parts);
  }

  /** Returns the ideal balance after the write: `begun`, less what was consumed or refunded. */
  #charge(
    change: Change,
    found: { opens: boolean; idle: boolean; begun: bigint; stored: bigint },
  ): bigint {
    const { landing, after, was, limit, process } = change;
    const { opens, idle, begun, stored } = found;
    const { endMs, left, carry } = limit.quota;
    const charged = landing.charged.get(limit.name) ?? 0n;
    const period = { bucket: after.bucket, limitName: limit.name, endMs };
    if (charged >= 0n) {
      const allowance = BigInt(limit.capacity) + carry.restMilli;
      const debt = this.#debtOf(after.bucket, limit.name);
      this.#books.take(period, process, { amount: charged, allowance, debt });
      return begun - charged;
    }
    if (left !== was.quota.left && !opens) {
      // A refund of an earlier period counts as what it would have added to what was carried.
      this.#books.refund(period, process, 0n, -charged);
      return begun + lateRefund(change, -charged);
    }
    const returned = idle || opens ? 0n : stored - begun;
    if (returned < 0n) this.#refuse(after, limit, stored, begun);
    this.#books.refund(period, process, returned, -charged - returned);
    return begun + returned;
  }

  /** Records the balances of a shard and of those that were split off it. */
  #keep({ after, limit, made }: Change, parts: readonly (QuotaLimit | undefined)[]): void {
    const { endMs } = limit.quota;
    this.#levels(after).set(limit.name, { tokens: limit.tokens, endMs });
    made.forEach((shard, at) => {
      const part = parts[at];
      if (part?.quota.endMs !== endMs) {
        const detail = `begins with the end ${part?.quota.endMs}, and its origin has ${endMs}`;
        throw new Violation("over-admission", `"${limit.name}" of ${shard.id}`, detail);
      }
      this.#levels(shard).set(limit.name, { tokens: part.tokens, endMs });
    });
  }

  /**
   * Returns what a period gets from the ones before it; negative: a debt. `found`: what it seems to
   * have got. A refund that opens it may belong to the period that is over, or to an earlier one.
   */
  #carriedInto(change: Change, found: bigint): bigint {
    const { was, limit, level, landing } = change;
    if (was.quota.sessionMs !== undefined || level.endMs === 0) return 0n;
    const charged = landing.charged.get(limit.name) ?? 0n;
    const plain = this.#carriedFrom(change, level.tokens);
    if (charged >= 0n || plain === found) return plain;
    return this.#carriedFrom(change, level.tokens - charged);
  }

  #carriedFrom({ before, after, was, level, process }: Change, tokens: bigint): bigint {
    const { shard, count } = before;
    const share = shareRate(was, shard, count).capacity;
    const most = restOf(was, shard, count);
    const times = { nowMs: after.epochMs, storedEndMs: level.endMs };
    let carried = 0n;
    let balance = tokens;
    for (let left = resetsUntil(this.#edges, process, times); left > 0; left -= 1) {
      carried = carriedOf(was, balance, most);
      balance = share + carried;
    }
    return carried;
  }

  /** Checks when a period is opened, and when it ends. */
  #judgeOpening(call: TableCall, change: Change): void {
    const { before, after, limit, level, landing, made } = change;
    this.openings += 1;
    const { quota, name } = limit;
    const openedMs = after.epochMs;
    const subject = `"${name}" of ${after.id}`;
    if (openedMs < level.endMs || openedMs > Math.max(call.plannedMs, before.epochMs)) {
      const detail = `opened a period at ${openedMs}, and the last one ends at ${level.endMs}`;
      throw new Violation("over-admission", subject, detail);
    }
    if (quota.sessionMs !== undefined) {
      const charged = landing.charged.get(name) ?? 0n;
      this.#judgeSession(after, name, { endMs: quota.endMs, openedMs, sessionMs: quota.sessionMs });
      if (charged > 0n) return;
      throw new Violation("over-admission", subject, "a session was opened without a consumption");
    }
    const opening = { nowMs: openedMs, storedEndMs: level.endMs };
    const endMs = endOfNext(this.#edges, call.process, opening);
    // A split goes by the zones of this Node, not by what a process of a simulation has.
    const ofNode =
      made.length > 0 && endOfNext({ ...this.#edges, shiftOf: unmoved }, call.process, opening);
    if (quota.endMs === endMs || quota.endMs === ofNode) return;
    const detail = `a period was opened at ${openedMs} until ${quota.endMs}, expected ${endMs}`;
    throw new Violation("over-admission", subject, `${detail}, after ${level.endMs}`);
  }

  /** Checks that a session lasts as long as it should, and that no shard is in another one. */
  #judgeSession(
    after: ShardImage,
    name: string,
    session: { readonly endMs: number; readonly openedMs: number; readonly sessionMs: number },
  ): void {
    const { endMs, openedMs, sessionMs } = session;
    const others = [...this.#shards].flatMap(([id, levels]) =>
      id !== after.id && id.startsWith(`${after.bucket} `) ? (levels.get(name) ?? []) : [],
    );
    const live = others.find((other) => other.endMs > openedMs);
    if (live === undefined ? endMs === openedMs + sessionMs : endMs === live.endMs) return;
    const detail = `opened a session at ${openedMs} until ${endMs}, of another shard ${live?.endMs}`;
    throw new Violation("over-admission", `"${name}" of ${after.id}`, detail);
  }

  #merged({ merged }: BucketLanding, after: ShardImage): void {
    const mine = this.#levels(after);
    const gone = this.#shards.get(merged?.image.id ?? "");
    for (const limit of quotasOf(after)) {
      const [one, other] = [mine.get(limit.name), gone?.get(limit.name)];
      if (one === undefined || other === undefined || one.endMs !== other.endMs) {
        const detail = `merges the periods until ${one?.endMs} and ${other?.endMs}`;
        throw new Violation("over-admission", `"${limit.name}" of ${after.id}`, detail);
      }
      const ideal = one.tokens + other.tokens;
      const idle = limit.quota.sessionMs !== undefined && after.epochMs >= one.endMs;
      if (!idle && limit.tokens !== ideal) this.#refuse(after, limit, limit.tokens, ideal);
      if (limit.quota.endMs !== one.endMs) this.#refuse(after, limit, limit.tokens, ideal);
      mine.set(limit.name, { tokens: limit.tokens, endMs: one.endMs });
    }
    this.#shards.delete(merged?.image.id ?? "");
  }

  #created(call: TableCall, landing: BucketLanding, image: ShardImage): void {
    for (const [name, { endMs, tokens }] of this.#levels(image)) {
      const limit = quotasOf(image).find((each) => each.name === name);
      const isLess = limit !== undefined && tokens < BigInt(limit.capacity);
      if (image.epochMs >= endMs || !isLess) continue;
      const detail = `expired inside the period that ends at ${endMs}`;
      throw new Violation("over-admission", `"${name}" of ${image.id}`, detail);
    }
    for (const limit of quotasOf(image)) this.#start(call, landing, image, limit);
  }

  /** Begins with the whole share of the allowance. */
  #start(call: TableCall, landing: BucketLanding, image: ShardImage, limit: QuotaLimit): void {
    const { name, quota } = limit;
    const charged = landing.charged.get(name) ?? 0n;
    const ideal = shareRate(limit, image.shard, image.count).capacity - charged;
    if (limit.tokens !== ideal) this.#refuse(image, limit, limit.tokens, ideal);
    const sessionEndMs = charged > 0n ? image.epochMs + (quota.sessionMs ?? 0) : 0;
    const endMs =
      quota.sessionMs === undefined
        ? edgeAfter(this.#edges, call.process, image.epochMs)
        : sessionEndMs;
    if (quota.endMs !== endMs) {
      const detail = `begins with a period until ${quota.endMs}, expected ${endMs}`;
      throw new Violation("over-admission", `"${name}" of ${image.id}`, detail);
    }
    const period = { bucket: image.bucket, limitName: name, endMs };
    const [allowance, debt] = [BigInt(limit.capacity), this.#debtOf(image.bucket, name)];
    this.#books.take(period, call.process, { amount: charged, allowance, debt });
    this.#levels(image).set(name, { tokens: limit.tokens, endMs });
  }

  #levels({ id }: ShardImage): Map<string, Level> {
    const levels = this.#shards.get(id) ?? new Map<string, Level>();
    this.#shards.set(id, levels);
    return levels;
  }

  #refuse(image: ShardImage, limit: QuotaLimit, stored: bigint, ideal: bigint): never {
    const checker = stored > ideal ? "over-admission" : "conservation";
    const detail = `holds ${stored} milli, where ${ideal} are right`;
    throw new Violation(checker, `"${limit.name}" of ${image.id}`, detail);
  }
}

/** Returns what a shard may take over of a rest. */
function restOf({ quota }: QuotaLimit, shard: number, count: number): bigint {
  const rest = { capacity: Number(quota.carry.restMilli), refill: 0, period: 1 };
  return shareRate(rest, shard, count).capacity;
}

/** Returns the part of a balance that the next period takes over. */
function carriedOf({ quota }: QuotaLimit, balance: bigint, most: bigint): bigint {
  if (balance < 0n) return quota.carry.debt ? balance : 0n;
  return smaller(balance, most);
}

/** Returns what a refund of an earlier period adds, and checks what the shard says is left. */
function lateRefund({ limit, was, before, after }: Change, refunded: bigint): bigint {
  const most = restOf(was, before.shard, before.count);
  const left = smaller(was.quota.left + refunded, most);
  if (limit.quota.left !== left) {
    const detail = `has ${limit.quota.left} milli left of the last period, expected ${left}`;
    throw new Violation("conservation", `"${limit.name}" of ${after.id}`, detail);
  }
  return carriedOf(was, left, most) - carriedOf(was, was.quota.left, most);
}

function unmoved(): number {
  return 0;
}

/** Lists the limits that have periods. */
function quotasOf({ limits }: ShardImage): readonly QuotaLimit[] {
  return limits.filter((limit): limit is QuotaLimit => limit.quota !== undefined);
}
