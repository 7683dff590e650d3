/**
 * Every adapter passes the one contract; local DynamoDB has files of its own, by their duration.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "@zae-limiter/limiter/base/time.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import type { OpenedStore } from "@zae-limiter/testing/item-store-contract/subject.ts";

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
