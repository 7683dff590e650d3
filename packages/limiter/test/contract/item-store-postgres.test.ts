/** The contract on PostgreSQL. */

import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { forSuite } from "@zae-limiter/test-support/for-suite.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import type { OpenedStore } from "@zae-limiter/testing/item-store-contract/subject.ts";

describePostgres("PostgreSQL", (url) => {
  const schema = forSuite(() => newSchema(url));

  async function open(): Promise<OpenedStore> {
    const store = new PostgresItemTable(await schema().connect());
    return { store, close: () => store.close() };
  }

  itemStoreContract("a table", open, { many: 500 });
});
