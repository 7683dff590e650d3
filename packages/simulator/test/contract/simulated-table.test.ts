/** The simulated table is a store like the others: it passes their contract. */

import { setImmediate as tick } from "node:timers/promises";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import type { OpenedStore } from "@zae-limiter/testing/item-store-contract/subject.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";

/** Opens a simulated table. Time passes by itself, because the contract waits for its calls. */
async function openSimulated(): Promise<OpenedStore> {
  const time = new VirtualTime(Date.now());
  const table = new SimulatedTable({
    time,
    latency: { medianMs: 1, slowShare: 0 },
    // The contract writes megabytes to one partition key, and is not about how long that takes.
    throughput: { writeUnitsPerSecond: 1_000_000 },
  });
  let open = true;
  const passing = (async () => {
    while (open) {
      await time.pass(1);
      await tick();
    }
  })();
  return {
    store: table.process().store,
    close: async () => {
      open = false;
      await passing;
    },
  };
}

itemStoreContract("simulated", openSimulated, {
  many: 130,
  noTimePasses: "the simulated table removes nothing by itself",
});
