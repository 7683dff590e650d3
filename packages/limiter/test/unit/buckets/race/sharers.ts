/**
 * Which actors share a write: consumes and adjustments of each are noted where they join a group,
 * and each group makes its calls in the name of all its members.
 */

import { Adjustments } from "@zae-limiter/limiter/buckets/adjustments.ts";
import { Adjuster } from "@zae-limiter/limiter/buckets/distributed/consume/adjuster.ts";
import { Driver } from "@zae-limiter/limiter/buckets/distributed/consume/driver.ts";
import { WaitingConsume } from "@zae-limiter/limiter/buckets/distributed/consume/group.ts";
import type { Member } from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import { ShardRequests } from "@zae-limiter/limiter/buckets/distributed/state/shard-requests.ts";
import type { Adjustment, BucketConfig, Leg } from "@zae-limiter/limiter/buckets/leg.ts";
import { afterAll, beforeAll, vi } from "vitest";
import { ACTOR, type Shares } from "./world.ts";

const actors = new WeakMap<Leg | Adjustment, number>();

function note(joined: Leg | Adjustment): void {
  const actor = ACTOR.getStore();
  if (typeof actor === "number") actors.set(joined, actor);
}

interface Part {
  readonly of: Leg | Adjustment;
  readonly config: BucketConfig;
  readonly amountsMilli: readonly number[];
}

/** Calls outside of a race belong to no actor. */
function sharesOf(parts: readonly Part[]): Shares | undefined {
  const shares = new Map<number, Map<string, number>>();
  for (const { of, config, amountsMilli } of parts) {
    const actor = actors.get(of);
    if (actor === undefined) continue;
    const amounts = shares.get(actor) ?? new Map<string, number>();
    shares.set(actor, amounts);
    config.limits.forEach(({ name }, at) => {
      amounts.set(name, (amounts.get(name) ?? 0) + (amountsMilli[at] ?? 0));
    });
  }
  return shares.size === 0 ? undefined : shares;
}

function partOf(member: Member): Part {
  if (!(member instanceof WaitingConsume)) throw new Error("a member that does not wait");
  const { leg } = member;
  return { of: leg, config: leg.config, amountsMilli: leg.amountsMilli };
}

function changeOf(adjustment: Adjustment): Part {
  return { of: adjustment, config: adjustment.config, amountsMilli: adjustment.deltasMilli };
}

/** Follows the groups of all stores while the tests of this file run. */
export function followSharers(): void {
  const inTheNameOf = <T>(parts: readonly Part[], work: () => T): T => {
    const shares = sharesOf(parts);
    return shares === undefined ? work() : ACTOR.run(shares, work);
  };
  beforeAll(() => {
    const { consume } = Driver.prototype;
    vi.spyOn(Driver.prototype, "consume").mockImplementation(function (this: Driver, leg, ...rest) {
      note(leg);
      return consume.call(this, leg, ...rest);
    });
    const { adjust } = Adjustments.prototype;
    vi.spyOn(Adjustments.prototype, "adjust").mockImplementation(function (
      this: Adjustments<unknown>,
      adjustment,
      deadline,
    ) {
      note(adjustment);
      return adjust.call(this, adjustment, deadline);
    });
    const { refund } = Adjustments.prototype;
    vi.spyOn(Adjustments.prototype, "refund").mockImplementation(function (
      this: Adjustments<unknown>,
      adjustment,
      deadline,
    ) {
      note(adjustment);
      return refund.call(this, adjustment, deadline);
    });
    const { write } = Driver.prototype;
    vi.spyOn(Driver.prototype, "write").mockImplementation(function (
      this: Driver,
      request,
      one,
      end,
    ) {
      const parts = one.members.map(partOf);
      return inTheNameOf(parts, () => write.call(this, request, one, end));
    });
    const { create, spread } = ShardRequests.prototype;
    vi.spyOn(ShardRequests.prototype, "create").mockImplementation(function (
      this: ShardRequests,
      request,
      members,
      atMs,
      end,
    ) {
      const parts = members.map(partOf);
      return inTheNameOf(parts, () => create.call(this, request, members, atMs, end));
    });
    vi.spyOn(ShardRequests.prototype, "spread").mockImplementation(function (
      this: ShardRequests,
      request,
      member,
      writes,
      end,
    ) {
      const actor = actors.get((member as WaitingConsume).leg);
      const work = () => spread.call(this, request, member, writes, end);
      return actor === undefined ? work() : ACTOR.run(actor, work);
    });
    const { write: change, hasArrived } = Adjuster.prototype;
    vi.spyOn(Adjuster.prototype, "write").mockImplementation(function (
      this: Adjuster,
      shared,
      tokens,
    ) {
      return inTheNameOf(shared.shares.map(changeOf), () => change.call(this, shared, tokens));
    });
    vi.spyOn(Adjuster.prototype, "hasArrived").mockImplementation(function (
      this: Adjuster,
      shared,
      tokens,
    ) {
      return inTheNameOf(shared.shares.map(changeOf), () => hasArrived.call(this, shared, tokens));
    });
  });
  afterAll(() => {
    vi.restoreAllMocks();
  });
}
