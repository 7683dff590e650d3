/**
 * The checkers of switches, moves, resets and top-ups, on stories that are short enough to follow.
 */

import type { ShardImage } from "@zae-limiter/simulator/checkers/bucket-image.ts";
import { chargedBy } from "@zae-limiter/simulator/checkers/charges.ts";
import { LinkHistory } from "@zae-limiter/simulator/checkers/links.ts";
import { Operations } from "@zae-limiter/simulator/checkers/operations.ts";
import { SwitchHistory } from "@zae-limiter/simulator/checkers/switch-history.ts";
import { describe, expect, test } from "vitest";

const RATE = { capacity: 10_000, refill: 10_000, period: 3_600_000 };
const BUCKET = { entityId: "e0", resource: "api" };

function image(tokens: number, consumed: number, acquires = 0, rate = RATE): ShardImage {
  const amounts = { tokens: BigInt(tokens), consumed: BigInt(consumed), remainder: 0 };
  const limits = [{ name: "a", ...amounts, ...rate }];
  const place = { ...BUCKET, bucket: "e0 api", id: "e0 api 0", shard: 0, count: 1 };
  return { ...place, epochMs: 0, acquires, limits };
}

function landing(before: ShardImage | undefined, after: ShardImage, operated = false) {
  const charged = chargedBy(before, after, { operated, bypasses: true });
  const exactLimits = new Set<string>();
  return { PK: "e0", before, after, plannedMs: 0, exactLimits, charged };
}

describe("what leaves a balance", () => {
  const charged = (before: ShardImage | undefined, after: ShardImage, context = {}) =>
    chargedBy(before, after, context).get("a");

  test("what leaves a balance is what was consumed, unless the balance may stay as it was, and has", () => {
    const bypasses = true;
    expect(charged(image(9000, 0), image(7000, 2000), { bypasses })).toBe(2000n);
    expect(charged(image(9000, 0), image(9000, 2000), { bypasses })).toBe(0n);
    expect(charged(image(9000, 0), image(9000, 2000))).toBe(2000n);
    expect(charged(undefined, image(10_000, 2000), { bypasses })).toBe(0n);
    expect(charged(undefined, image(8000, 2000), { bypasses })).toBe(2000n);
  });

  test("what leaves a balance is nothing where a smaller capacity cuts it under a bypass", () => {
    const smaller = { ...RATE, capacity: 2000 };
    const bypasses = true;
    expect(charged(image(9000, 0), image(2000, 5000, 0, smaller), { bypasses })).toBe(0n);
    expect(charged(image(9000, 0), image(1000, 1000, 0, smaller), { bypasses })).toBe(1000n);
    expect(charged(image(1500, 0), image(1500, 5000, 0, smaller), { bypasses })).toBe(0n);
  });

  test("what leaves a balance is below zero when an operation has added to the balance", () => {
    const operated = true;
    expect(charged(image(1000, 9000), image(4000, 9000), { operated })).toBe(-3000n);
    expect(charged(image(1000, 9000), image(4000, 9000))).toBe(0n);
  });
});

describe("a switch", () => {
  let nowMs = 0;
  const now = () => nowMs;
  const at = (sinceMs: number, process = 1) => ({ process, sinceMs, nowMs: sinceMs + 10 });

  test("a switch counts at once in its own process, and in others when they must know", () => {
    const switches = new SwitchHistory(3000);
    const states = (sinceMs: number, process: number) => [
      ...switches.possible("e0", "api", at(sinceMs, process)),
    ];
    nowMs = 1000;
    const done = switches.begin({ entityId: "e0" }, "disabled", 7, now);
    expect(states(500, 7)).toEqual(["enabled"]);
    expect(states(2000, 7).sort()).toEqual(["disabled", "enabled"]);
    nowMs = 2000;
    done();
    expect(states(2001, 7)).toEqual(["disabled"]);
    expect(states(4000, 1).sort()).toEqual(["disabled", "enabled"]);
    expect(states(5001, 1)).toEqual(["disabled"]);
  });

  test("a switch of a more specific level decides, and what it found is compared", () => {
    const switches = new SwitchHistory(3000);
    nowMs = 0;
    switches.begin({ resource: "api" }, "disabled", 1, now)();
    switches.begin(BUCKET, "bypass", 1, now)();
    const judge = (found: "bypass" | "enabled") => () =>
      switches.judge("call 1", BUCKET, found, at(10_000));
    expect(judge("bypass")).not.toThrow();
    expect(judge("enabled")).toThrow(/found e0 api enabled, where it is bypass/);
  });

  test("a switch that bypasses lets a consume leave the balance, and no other does", () => {
    const switches = new SwitchHistory(3000);
    nowMs = 0;
    const land = (tokens: number) => () => {
      switches.landed([landing(image(9000, 0, 1), image(tokens, 2000, 2))], 1, 10_000);
    };
    expect(land(9000)).not.toThrow(); // nothing was ever switched
    switches.begin(BUCKET, "bypass", 1, now)();
    expect(land(9000)).not.toThrow();
    expect(land(7000)).toThrow(/found e0 api enabled, where it is bypass/);
  });
});

describe("a move", () => {
  test("a move lets a call go by the link before it until it is done, and a refusal for a second more", () => {
    const links = new LinkHistory();
    links.start("e1", "e0");
    let nowMs = 100;
    const done = links.begin("e1", "e2", () => nowMs);
    const judge = (consumed: string[], sinceMs: number) => () =>
      links.judge("call 1", "e1", new Set(consumed), sinceMs);
    expect(judge(["e1", "e0"], 150)).not.toThrow();
    nowMs = 200;
    done();
    expect(links.parentOf("e1")).toBe("e2");
    expect(judge(["e1", "e2"], 250)).not.toThrow();
    expect(judge(["e1", "e0"], 250)).toThrow(/where its links say e1 e2/);
    const refuse = (sinceMs: number) => () => links.judgeRefusal("call 1", "e1", ["e0"], sinceMs);
    expect(refuse(1200)).not.toThrow();
    expect(refuse(1201)).toThrow(/refused by e0, where its links say e1 e2/);
  });
});

describe("a top-up", () => {
  const planned = { key: "k", kind: "top_up", bucket: "e0 api", amounts: { a: 3 } } as const;
  const record = (amount: number) => ({
    ...{ PK: "e0", SK: "#OP#k", shards: 1 },
    amounts: { a: amount },
  });

  function made(operations: Operations, amount: number, tokens: number): void {
    const after = record(amount);
    const bucket = landing(image(1000, 9000), image(1000 + tokens, 9000), true);
    operations.landed([{ key: after, before: undefined, after }], [bucket]);
  }

  test("a top-up is made once, and every call is told the same", () => {
    const operations = new Operations();
    operations.plan(planned);
    const told = { shards: 1, amounts: { a: 3 } };
    expect(() => operations.answered("k", told)).toThrow("was never made");
    made(operations, 3, 3000);
    operations.answered("k", told);
    expect(() => operations.answered("k", { ...told, amounts: { a: 2 } })).toThrow(/was told/);
    expect(() => made(operations, 3, 3000)).toThrow(/was made twice/);
  });

  test("a top-up adds what its record says, and no more than was asked for", () => {
    for (const [told, milli] of [
      [3, 2000],
      [4, 4000],
    ] as const) {
      const operations = new Operations();
      operations.plan(planned);
      expect(() => made(operations, told, milli)).toThrow(/has added \d of "a"/);
    }
  });
});
