import { onAdded, tellAdded } from "@zae-limiter/limiter/buckets/added-tokens.ts";
import type { BucketStore } from "@zae-limiter/limiter/buckets/bucket-store.ts";
import { expect, test } from "vitest";

test("a listener hears of the tokens that were added to its own store, and of no others", () => {
  const [one, other] = [{}, {}] as [BucketStore, BucketStore];
  const heard: unknown[] = [];
  onAdded(one, (bucket, tokens) => heard.push([bucket.entityId, [...tokens]]));
  const bucket = { entityId: "key-1", resource: "gpt-4" };
  tellAdded(one, bucket, { rpm: 5, tpm: 0 });
  tellAdded(one, bucket, { rpm: 0 });
  tellAdded(other, bucket, { rpm: 7 });
  expect(heard).toEqual([["key-1", [["rpm", 5]]]]);
});
