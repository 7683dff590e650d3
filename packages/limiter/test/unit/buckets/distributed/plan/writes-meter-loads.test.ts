import { BucketLoads } from "@zae-limiter/limiter/buckets/distributed/plan/writes-meter.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";

const NAME = { entityId: "e", resource: "r" };

function loadsAt() {
  const time = { nowMs: NOW };
  return { time, loads: new BucketLoads(() => time.nowMs) };
}

test("the largest amount of each limit is remembered, by bucket", () => {
  const { loads } = loadsAt();
  expect(loads.largestOf(NAME)).toBeUndefined();
  const config = configOf(["a:10/min", "b:10/min"]);
  loads.note(NAME, config, [3000, 1000]);
  loads.note(NAME, config, [2000, 4000]);
  loads.noteLargest(NAME, new Map([["a", 2999]]));
  expect(loads.largestOf(NAME)).toEqual(
    new Map([
      ["a", 3000],
      ["b", 4000],
    ]),
  );
  expect(loads.largestOf({ ...NAME, resource: "other" })).toBeUndefined();
});

test("half of what was counted is forgotten each second, and all with another number of shards", () => {
  const { time, loads } = loadsAt();
  const bucket = shardOf(1, { shardCount: 2 });
  for (let call = 0; call < 4; call += 1) loads.count(NAME, 2, "consumed");
  loads.count(NAME, 2, "throttled");
  expect(loads.of(bucket)).toMatchObject({ count: 2, sinceMs: NOW, consumed: 4, throttled: 1 });
  time.nowMs += 1000;
  loads.count(NAME, 2, "throttled");
  expect(loads.of(bucket)).toMatchObject({ consumed: 2, throttled: 1.5, sinceMs: NOW });
  loads.count(NAME, 4);
  expect(loads.of({ ...bucket, shardCount: 4 })).toMatchObject({
    ...{ count: 4, sinceMs: NOW + 1000, consumed: 0, throttled: 0 },
  });
});

test.each([
  // ms between two sightings of the meter, and what it gained; then writes per second
  [1000, 500, 500],
  [200, 10, 50],
  [2999, 0, 0],
  [99, 500, undefined],
  [3000, 500, undefined],
  [1000, -1, undefined],
  [-5, 100, undefined],
])("a meter that is seen %i ms later with %i ms more shows %s writes per second", (...row) => {
  const [laterMs, gained, expected] = row;
  const { time, loads } = loadsAt();
  loads.recordMeter(shardOf(1, { meterMs: NOW }));
  time.nowMs += laterMs;
  const bucket = shardOf(1, { meterMs: NOW + gained });
  loads.recordMeter(bucket);
  expect(loads.of(bucket).writesPerSecond).toBe(expected);
});

test("a shard without a meter shows nothing, and each shard has its own", () => {
  const { time, loads } = loadsAt();
  const one = shardOf(1, { shard: 1, shardCount: 2, meterMs: NOW });
  loads.recordMeter(shardOf(1));
  loads.recordMeter(one);
  time.nowMs += 1000;
  loads.recordMeter({ ...one, meterMs: NOW + 70 });
  expect(loads.of(one).writesPerSecond).toBe(70);
  expect(loads.of(shardOf(1, { shardCount: 2 })).writesPerSecond).toBeUndefined();
});
