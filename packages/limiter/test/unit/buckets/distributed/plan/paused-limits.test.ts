import { newBucket } from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import {
  newLevel,
  pausedAside,
  pausedAttributes,
  pausedIn,
  pausedName,
  pausedOf,
  pausedText,
} from "@zae-limiter/limiter/buckets/distributed/plan/paused-limits.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { allowanceOf } from "@zae-limiter/limiter/buckets/periods.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { StoredLimit } from "@zae-limiter/limiter/records/bucket-item.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;
const END_MS = NOW - (NOW % DAY_MS) + DAY_MS;
const QUOTA = Limit.parse("a:10/day UTC").rate;

const BUCKET = newBucket({
  name: { entityId: "e", resource: "r" },
  config: configOf(["a:10/day UTC"]),
  link: UNLINKED,
  amountsMilli: [3000],
  nowMs: NOW,
  rules: { ...DYNAMODB_TRAITS, ttlMultiplier: 7 },
});
const STORED = BUCKET.limits.get("a") as StoredLimit;

test("a limit that stops inside its period is read again as it was", () => {
  const text = pausedText(STORED, NOW);
  const paused = pausedIn({ [pausedName("a", QUOTA)]: text, other: 1 });
  expect(paused?.get("pq_a")).toMatchObject({
    limitName: "a",
    level: { tokensMilli: 7000, endMs: END_MS },
  });
  const bucket = { ...BUCKET, paused };
  expect(pausedOf(bucket, "a", QUOTA, NOW)?.rate.capacityMilli).toBe(10_000);
  expect(pausedOf(bucket, "a", QUOTA, END_MS)).toBeUndefined();
  expect(pausedOf(bucket, "a", Limit.parse("a:10/min").rate, NOW)).toBeUndefined();
  expect(pausedOf(bucket, "b", QUOTA, NOW)).toBeUndefined();
});

test("a quota and a session of one name wait next to each other, and aside of a split", () => {
  const session = Limit.parse("a:10/session:5hour").rate;
  const period = { endMs: NOW + 1000, leftMilli: 0, toppedUpMilli: 2000, isStored: true };
  const paused = pausedIn({
    [pausedName("a", QUOTA)]: pausedText(STORED, NOW),
    [pausedName("a", session)]: pausedText({ ...STORED, rate: session, period }, NOW),
  });
  const bucket = { ...BUCKET, paused };
  expect(pausedOf(bucket, "a", session, NOW)).toMatchObject({ toppedUpMilli: 2000 });
  expect(pausedOf(bucket, "a", QUOTA, NOW)?.rate.rule?.kind).toBe("quota");
  expect(pausedIn(pausedAttributes(paused))).toEqual(paused);
  const aside = { ...BUCKET, paused: pausedAside(paused) };
  expect(pausedOf(aside, "a", session, NOW)).toMatchObject({
    level: { tokensMilli: 0, endMs: NOW + 1000 },
    toppedUpMilli: 0,
  });
});

test("a limit that stops after its period is over leaves nothing", () => {
  expect(pausedText(STORED, END_MS)).toBeUndefined();
});

test.each(["", "1 2 3", "x 2 0 0 1 s5", "1 2 0 0 1 qx UTC 0 0"])(
  "the attribute %j of a limit that waits counts as absent",
  (text) => {
    expect(pausedIn({ [pausedName("a", QUOTA)]: text })).toBeUndefined();
  },
);

test("a new session is opened by what is consumed, and a new quota is in its period", () => {
  const session = allowanceOf(Limit.parse("a:10/session:5hour").rate);
  expect(newLevel(session, 0, NOW).endMs).toBe(0);
  expect(newLevel(session, 1, NOW).endMs).toBe(NOW + 5 * 3_600_000);
  expect(newLevel(allowanceOf(QUOTA), 0, NOW).endMs).toBe(END_MS);
});
