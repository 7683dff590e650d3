/** Tables of DynamoDB engines, for the contract. */

import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import type {
  ContractOptions,
  OpenedStore,
} from "@zae-limiter/testing/item-store-contract/subject.ts";

/** Differences between a local DynamoDB and DynamoDB. */
export function quirksOf({
  name,
}: RunningEngine): Pick<ContractOptions, "unchangedAppear" | "noTimePasses"> {
  return {
    noTimePasses: "local DynamoDB removes items by the time of the machine",
    unchangedAppear:
      name === "dynoxide" ? "dynoxide 1.2 records writes that change nothing" : undefined,
  };
}

/** In our shape, or in the shape that the Python library gives its tables. */
export async function openTable(
  { endpoint }: RunningEngine,
  shape: { gsi2Projection: "ALL"; lsis: true } | Record<string, never>,
  transport: "lean" | "sdk" = "lean",
): Promise<OpenedStore> {
  const connection = {
    table: `contract-${crypto.randomUUID()}`,
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
  };
  await createTable({ ...connection, ...shape });
  // Both databases share two cores with other tests, so the deadline proves nothing here.
  const store = new DynamoItemStore({ ...connection, transport, timeoutMs: 20_000 });
  const close = async () => {
    await store.close();
    await deleteTable(connection);
  };
  return { store, close };
}
