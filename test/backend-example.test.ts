/**
 * The store in docs/guide/backends.md passes the contract and carries a limiter, with its usage.
 * What the page shows of a table is what `examples/own-store` has.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { runAggregator } from "@zae-limiter/aws/aggregator/run.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { afterAll, expect, test } from "vitest";
import { lineAt } from "./architecture/source.ts";
import type { Example } from "./examples/extract.ts";
import { Workshop } from "./examples/workshop.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PAGE = "docs/guide/backends.md";
const ENTRIES = new Map([
  ["zae-limiter/testing", "packages/testing/src/index.ts"],
  ["zae-limiter", "src/index.ts"],
]);
const FENCE_PATTERN = /^```ts\n([\s\S]*?)\n```$/gm;
const QUOTE_PATTERN = /^```js\n([\s\S]*?)\n```$/gm;
const QUOTED = ["index.js", "map-table.js", "map-table.test.js"].map((name) =>
  readFileSync(join(ROOT, "examples/own-store", name), "utf8"),
);

const page = readFileSync(join(ROOT, PAGE), "utf8");
const blocks = [...page.matchAll(FENCE_PATTERN)].map(({ index, 1: code = "" }): Example => {
  return { owner: PAGE, path: PAGE, line: lineAt(page, index) + 1, code, runs: true };
});
const workshop = new Workshop(ROOT, ENTRIES);
afterAll(() => workshop.close());
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-example-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The class of the page, with the sources of this repository in place of the package. */
async function exampleStore(): Promise<new (clock?: () => number) => ItemStore> {
  const example = blocks.find(({ code }) => code.includes("class MapStore"))?.code ?? "";
  let resolved = example;
  for (const [name, path] of ENTRIES) {
    resolved = resolved.replaceAll(`from '${name}'`, `from '${join(ROOT, path)}'`);
  }
  const file = join(folder, "map-store.ts");
  writeFileSync(file, resolved);
  const module = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
    MapStore: new (clock?: () => number) => ItemStore;
  };
  return module.MapStore;
}

const MapStore = await exampleStore();

itemStoreContract(
  "the example of the docs",
  async () => {
    const store = new MapStore();
    return { store, close: () => store.close() };
  },
  { many: 130, noTimePasses: "the example never removes an item by itself" },
);

test("the code of the page compiles, and prints what its comments say", async () => {
  expect(workshop.typeErrors(blocks)).toEqual([]);
  const [first] = blocks;
  const printed = await workshop.run(first as Example, 0);
  expect(printed.map(({ text }) => text.join("\n"))).toEqual(["{ rpd: 99 }"]);
  expect(printed[0]?.expected).toBe("{ rpd: 99 }");
});

test("every part of the example of a table that the page shows is in the example", () => {
  const quotes = [...page.matchAll(QUOTE_PATTERN)].map(([, code = ""]) => code);
  expect(quotes).toHaveLength(QUOTED.length);
  expect(quotes.filter((code) => !QUOTED.some((text) => text.includes(code)))).toEqual([]);
});

test("a limiter works over the example, and its usage is counted", async () => {
  const now = Date.UTC(2026, 10, 16, 12);
  const clock = () => now;
  const store = new MapStore(clock);
  const repo = await Repository.over(store, { namespace: "tenant-a", clock });
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpm:10", "tpm:1000"]);
  await repo.entities.create({ id: "project" });
  await repo.entities.create({ id: "key-1", parentId: "project", cascade: true });
  const request = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 400 } };
  await limiter.run(request, (lease) => lease.settle({ tpm: 730 }));
  const refusal = await limiter.tryAcquire(request);
  expect(refusal).toMatchObject({ granted: false, neverFits: false });
  const { entityId, resource } = request;
  expect(await limiter.available({ entityId, resource })).toEqual({ rpm: 9, tpm: 270 });

  const stop = new AbortController();
  const connection = { clock };
  const options = { batchMs: 0, write: () => {}, connection, signal: stop.signal };
  const running = runAggregator(store, options);
  const counted = async () => (await repo.usage.summary({ entityId: "key-1" })).total;
  await expect.poll(counted, { timeout: 10_000 }).toEqual({ rpm: 1, tpm: 730 });
  stop.abort();
  expect(await running).toMatchObject({ failures: 0 });
  // The aggregator has left the store open; the limiter closes it.
  await limiter.close();
  await expect(store.get({ PK: "a", SK: "b" })).rejects.toThrow("closed");
});

test("a repository over a store that lacks a method is refused, with the names of those", async () => {
  const { get, put } = new MemoryItemStore();
  for (const wrong of [{ get, put }, null, "memory:"]) {
    const opening = Repository.over(wrong as unknown as ItemStore);
    await expect(opening).rejects.toMatchObject({
      field: "store",
      message: expect.stringMatching(/expected an item store.*getMany.*transact.*close/),
    });
  }
});

test("a repository over a store hears of its calls, where the store tells of them", async () => {
  const calls: string[] = [];
  const onCall = ({ operation }: { operation: string }) => calls.push(operation);
  const repo = await Repository.over(new MemoryItemStore(), { onCall });
  expect(calls).toContain("transact");
  await repo.close();
});
