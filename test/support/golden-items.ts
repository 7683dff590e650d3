/** Items that the Python library 0.17 wrote, moved into a namespace of a test. */

import { readFileSync } from "node:fs";
import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";

const NAMESPACE_IDS = ["QVHYLnfGfB8", "KHujJcZgmNk", "NfABdjPIJCY", "UX2ydMH-eOs"];
const DAY_SECONDS = 86_400;

/** The items of a fixture; what expires does so in a day, whenever the tests run. */
export function pythonItems(file: string, namespaceId: string): Item[] {
  const url = new URL(`../fixtures/golden/${file}.json`, import.meta.url);
  let text = readFileSync(url, "utf8");
  for (const from of NAMESPACE_IDS) text = text.replaceAll(from, namespaceId);
  const parsed = JSON.parse(text) as { item?: RawItem; items?: RawItem[] };
  const ttl = Math.floor(Date.now() / 1000) + DAY_SECONDS;
  return (parsed.items ?? [parsed.item ?? {}])
    .map(decodeItem)
    .map((item) => (item.ttl === undefined ? item : { ...item, ttl }));
}

type RawItem = Record<string, unknown>;

/** The only item of a fixture. */
export function pythonItem(file: string, namespaceId: string): Item {
  const [item] = pythonItems(file, namespaceId);
  if (item === undefined) throw new Error(`${file} has no item`);
  return item;
}

/** The answers of the schedule module of the Python library. */
export function scheduleVectors<Vectors>(): Vectors {
  const url = new URL("../fixtures/golden/80-schedule-vectors.json", import.meta.url);
  return JSON.parse(readFileSync(url, "utf8")) as Vectors;
}
