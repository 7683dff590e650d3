import { Deadline, systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { KnownRefusals } from "@zae-limiter/limiter/buckets/remote/known-refusals.ts";
import { WarmCalls } from "@zae-limiter/limiter/buckets/remote/warm-calls.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { WarmBuckets } from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { expect, test } from "vitest";

const CONFIG: BucketConfig = { limits: [Limit.parse("rpm:60")], source: "system", version: 1 };
const LEG = { entityId: "user", resource: "gpt-4", link: UNLINKED, linkIsFresh: true };

/** One bucket that does not refill, on a server that other processes use between two requests. */
class Server implements WarmBuckets {
  readonly serverDateSkewMs = undefined;
  readonly asked: number[] = [];
  #balance: number;
  readonly #takenBetween: number[];

  constructor(balance: number, takenBetween: readonly number[]) {
    this.#balance = balance;
    this.#takenBetween = [...takenBetween];
  }

  consume: WarmBuckets["consume"] = async ({ legs: [leg] }) => {
    const amount = leg?.consumedMilli[0] ?? 0;
    this.asked.push(amount);
    const isGranted = amount <= this.#balance;
    if (isGranted) this.#balance -= amount;
    const balancesMilli = [[this.#balance]];
    this.#balance -= this.#takenBetween.shift() ?? 0;
    return { outcome: isGranted ? "granted" : "refused", balancesMilli, configVersion: 1 };
  };

  adjust: WarmBuckets["adjust"] = async () => true;
  hold: WarmBuckets["hold"] = async () => false;
}

async function outcomesOn(server: Server, amounts: readonly number[]): Promise<string[]> {
  const calls = new WarmCalls({
    namespaceId: "n",
    warm: server,
    timer: systemTimer,
    clock: () => 0,
    nowMs: undefined,
    keyOf: ({ entityId, resource }) => ({ PK: entityId, SK: resource }),
    refusals: new KnownRefusals(() => 0),
    slots: undefined,
    step: () => ({ outcome: "conflict" }) as never,
    refund: () => undefined,
  });
  const deadline = new Deadline(systemTimer, 1000);
  const results = await Promise.all(
    amounts.map((amount) =>
      calls.consume([{ ...LEG, config: CONFIG, amountsMilli: [amount] }], { deadline }),
    ),
  );
  return results.map(({ outcome }) => outcome);
}

test("of calls that do not fit together, those that come first are granted", async () => {
  const server = new Server(9, []);
  const outcomes = await outcomesOn(server, [5, 4, 3]);
  expect(outcomes).toEqual(["granted", "granted", "refused"]);
  expect(server.asked).toEqual([12, 9]);
});

test("calls that fit after other processes took tokens may be others, and more of them", async () => {
  const server = new Server(10, [6]);
  const outcomes = await outcomesOn(server, [5, 5, 1, 1, 1, 1]);
  const [large, small] = [outcomes.slice(0, 2), outcomes.slice(2)];
  expect(large).toEqual(["refused", "refused"]);
  expect(small).toEqual(["granted", "granted", "granted", "granted"]);
  expect(server.asked).toEqual([14, 10, 4]);
});
