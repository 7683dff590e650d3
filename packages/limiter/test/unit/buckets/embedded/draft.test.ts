import { changedLinks } from "@zae-limiter/limiter/buckets/embedded/draft.ts";
import {
  type BucketConfig,
  type Leg,
  type Link,
  UNLINKED,
} from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

describe("the buckets of a call", () => {
  const PARENT: Link = { cascade: true, parentId: "team" };

  function legOf(config: BucketConfig, link = UNLINKED): Leg {
    return { entityId: "e", resource: "r", config, amountsMilli: [0], link, linkIsFresh: true };
  }

  test("a limit that the bucket does not have yet is full", () => {
    const config = configOf(["a:10/min", "new:7/min"]);
    expect(bucketWith([limitWith(4000)]).balancesOf(config, NOW + 6000)).toEqual([5000, 7000]);
  });

  test("where a link of a bucket differs from that of its leg, all links are returned", () => {
    const config = configOf(["a:10/min"]);
    const bucket = bucketWith([limitWith(1)], { link: PARENT });
    expect(changedLinks([{ leg: legOf(config, PARENT), bucket }])).toBeUndefined();
    expect(changedLinks([{ leg: legOf(config), bucket }])).toEqual([PARENT]);
  });

  test("a level that says whether acquires cascade counts more than the bucket", () => {
    const config = { ...configOf(["a:10/min"]), cascade: false };
    const bucket = bucketWith([limitWith(1)], { link: PARENT });
    expect(changedLinks([{ leg: legOf(config, PARENT), bucket }])).toEqual([
      { cascade: false, parentId: "team" },
    ]);
  });
});
