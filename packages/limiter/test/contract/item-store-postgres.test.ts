/** The contract on PostgreSQL. */

import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { newSchema, type TestSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import type { OpenedStore } from "@zae-limiter/testing/item-store-contract/subject.ts";
import { afterAll, beforeAll } from "vitest";

describePostgres("PostgreSQL", (url) => {
  let schema: TestSchema;
  beforeAll(async () => {
    schema = await newSchema(url);
  });
  afterAll(() => schema.drop());

  async function open(): Promise<OpenedStore> {
    const store = new PostgresItemTable(await schema.connect());
    return { store, close: () => store.close() };
  }

  itemStoreContract("a table", open, { many: 500 });
});
