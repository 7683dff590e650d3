/** The contracts on the oldest PostgreSQL that is installed, as Debian installs them. */

import { existsSync, readdirSync } from "node:fs";
import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { PostgresServer } from "@zae-limiter/test-engines/postgres-server.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { newSchema, type TestSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openPostgres } from "./limiter-stores.ts";

const PLACE = "/usr/lib/postgresql";
const VERSION_MIN = 13;

const installed = existsSync(PLACE) ? readdirSync(PLACE).map(Number) : [];
const oldest = Math.min(...installed.filter((version) => version >= VERSION_MIN));
const ABSENT = !Number.isFinite(oldest) && `no PostgreSQL is in ${PLACE}`;

describeUnless(NIGHTLY_ONLY || ABSENT)(`PostgreSQL ${oldest}`, () => {
  let server: PostgresServer;
  let schema: TestSchema;
  vitest.beforeAll(async () => {
    server = await PostgresServer.start(`${PLACE}/${oldest}/bin`);
    schema = await newSchema(server.url);
  });
  vitest.afterAll(async () => {
    await schema.drop();
    await server.remove();
  });

  async function open() {
    const store = new PostgresItemTable(await schema.connect());
    return { store, close: () => store.close() };
  }

  limiterContract(vitest, `postgres ${oldest}`, () => openPostgres(server.url), { slots: true });
  itemStoreContract("a table", open, { many: 500 });
});
