/** Processes that share slots on DynamoDB, and processes that are killed or cut off. */

import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll } from "vitest";
import { slotProcessTests } from "./remote/slot-processes.ts";

describeEngines("slots", ({ endpoint }) => {
  const table = newName();
  beforeAll(async () => {
    await createTable({ table, endpoint, stream: false });
    const root = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    for (const namespace of ["seats", "ended"]) await root.namespaces.register(namespace);
    await root.close();
  });
  afterAll(() => deleteTable({ table, endpoint }));

  slotProcessTests(() => `dynamodb://${table}?endpoint=${encodeURIComponent(endpoint)}`);
});
