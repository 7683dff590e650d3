/** Every adapter passes the one contract. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/domain/clock.ts";
import { createTable, deleteTable } from "../../src/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "../../src/storage/dynamodb/item-store.ts";
import { MemoryItemStore } from "../../src/storage/memory/item-store.ts";
import { openSqlite } from "../../src/storage/sqlite/open.ts";
import type { RunningEngine } from "../engines/engine.ts";
import { describeEngines } from "../engines/engines.ts";
import { itemStoreContract } from "./item-store/contract.ts";
import type { OpenedStore } from "./item-store/subject.ts";

/** The time of this machine, and more where a test lets it pass. */
function movableClock(): { clock: Clock; advance: (milliseconds: number) => void } {
  let aheadMs = 0;
  return {
    clock: () => systemClock() + aheadMs,
    advance: (milliseconds) => {
      aheadMs += milliseconds;
    },
  };
}

async function openMemory(): Promise<OpenedStore> {
  const { clock, advance } = movableClock();
  const store = new MemoryItemStore({ clock });
  return { store, advance, close: () => store.close() };
}

async function openFile(): Promise<OpenedStore> {
  const { clock, advance } = movableClock();
  const directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const { store } = await openSqlite({ path: join(directory, "items.db"), clock });
  const close = async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  };
  return { store, advance, close };
}

/** In our shape, or in the shape that the Python library gives its tables. */
async function openTable(
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
  // Both engines share two cores with everybody else, so the deadline proves nothing here.
  const store = new DynamoItemStore({ ...connection, transport, timeoutMs: 20_000 });
  const close = async () => {
    await store.close();
    await deleteTable(connection);
  };
  return { store, close };
}

itemStoreContract("memory", openMemory, { many: 500 });
itemStoreContract("sqlite", openFile, { many: 500 });
describeEngines("DynamoDB", (engine) => {
  const options = {
    unchangedAppear:
      engine.name === "dynoxide" ? "dynoxide 1.2 records writes that change nothing" : undefined,
  };
  itemStoreContract("our table", () => openTable(engine, {}), { ...options, many: 130 });
  itemStoreContract(
    "a table of the Python library",
    () => openTable(engine, { gsi2Projection: "ALL", lsis: true }),
    { ...options, many: 60, gsi2Projection: "ALL" },
  );
  // The other engine proves nothing about the transport that this one does not.
  if (engine.name === "dynoxide") {
    const open = () => openTable(engine, {}, "sdk");
    itemStoreContract("our table through the SDK", open, { ...options, many: 60 });
  }
});
