/** The stores that bills are compared on: memory, a file, and local DynamoDB. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, describe } from "vitest";

/** Opens a limiter whose clock does not advance. */
export type OpenLimiter = () => Promise<RateLimiter>;

/** Local DynamoDB shares the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

/** Runs a suite on each store; `isSlow`: a local DynamoDB that takes ten times as long. */
export function describeBilled(
  title: string,
  suite: (open: OpenLimiter, isSlow: boolean) => void,
): void {
  const nowMs = Date.now();
  const clock = () => nowMs;
  describe(`${title} in memory`, () => {
    suite(() => RateLimiter.open("memory:", { clock }), false);
  });
  describe(`${title} in sqlite`, () => {
    let folder = "";
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "zae-limiter-bill-"));
    });
    afterAll(() => rmSync(folder, { recursive: true }));
    suite(() => RateLimiter.open(`sqlite:${join(folder, "limits.db")}`, { clock }), false);
  });
  describeEngines(title, ({ endpoint, name }) => {
    const table = newName();
    beforeAll(async () => {
      await createTable({ table, endpoint, stream: false });
      await (await Repository.createTable(table, { endpoint })).close();
    });
    afterAll(() => deleteTable({ table, endpoint }));
    const options = { clock, endpoint, timeoutMs: TIMEOUT_MS };
    const open = async () => new RateLimiter(await Repository.connect(table, options));
    suite(open, name === "dynamodb-local");
  });
}
