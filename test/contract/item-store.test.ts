/**
 * Every adapter passes the one contract; local DynamoDB has files of its own, by their duration.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/domain/clock.ts";
import { MemoryItemStore } from "../../src/storage/memory/item-store.ts";
import { openSqlite } from "../../src/storage/sqlite/connection.ts";
import type { OpenedStore } from "../../src/testing/item-store-contract/subject.ts";
import { itemStoreContract } from "./item-store/contract.ts";

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

itemStoreContract("memory", openMemory, { many: 500 });
itemStoreContract("sqlite", openFile, { many: 500 });
