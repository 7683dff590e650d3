/**
 * Slots of eight processes that are killed and stopped, on every store: `npm run soak:slots`. The
 * last tests take the real expiry, and minutes.
 */

import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { forSuite } from "@zae-limiter/test-support/for-suite.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { afterAll, beforeAll, describe } from "vitest";
import { type Effort, seatTests } from "../integration/slots/seats.ts";

const QUICK: Effort = { calls: 10_000, disturbedCalls: 4000, expirySeconds: 2 };
const SQLITE_SECONDS = 15;
const REMOTE_SECONDS = 60;
const real = (expirySeconds: number) => ({ calls: 800, disturbedCalls: 800, expirySeconds });

let places = 0;

/** Returns a name that no other test has. */
function place(): string {
  places += 1;
  return `soak-${places}`;
}

describe("slots on SQLite", () => {
  const folder = temporaryFolder();
  const address = () => `sqlite:${join(folder, `${place()}.db`)}`;
  describe("with an expiry of two seconds", () => seatTests(address, QUICK));
  describe("with the real expiry", () => seatTests(address, real(SQLITE_SECONDS)));
});

describePostgres("slots", (url) => {
  const schema = forSuite(() => newSchema(url));
  const address = () => `${schema().url}&namespace=${place()}`;
  describe("with an expiry of two seconds", () => seatTests(address, QUICK));
  describe("with the real expiry", () => seatTests(address, real(REMOTE_SECONDS)));
});

describeRedis("slots", (url) => {
  const { prefix, url: own } = ownPrefix(url);
  afterAll(() => removeKeys(url, prefix));
  const address = () => `${own}&namespace=${place()}`;
  describe("with an expiry of two seconds", () => seatTests(address, QUICK));
  describe("with the real expiry", () => seatTests(address, real(REMOTE_SECONDS)));
});

describeEngines("slots", ({ endpoint }) => {
  const table = newName();
  let root: Repository;
  beforeAll(async () => {
    await createTable({ table, endpoint, stream: false });
    root = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
  });
  afterAll(async () => {
    await root.close();
    await deleteTable({ table, endpoint });
  });
  const address = async () => {
    const namespace = place();
    await root.namespaces.register(namespace);
    return `dynamodb://${table}?endpoint=${encodeURIComponent(endpoint)}&namespace=${namespace}`;
  };
  describe("with an expiry of two seconds", () => seatTests(address, QUICK));
  describe("with the real expiry", () => seatTests(address, real(REMOTE_SECONDS)));
});
