/** `memory:`, a store in this process, which ends with it. */

import { show } from "../../domain/check.ts";
import type { StoreKind } from "./store-kind.ts";
import { usageOption } from "./usage-option.ts";

const NAME = "memory";

export const MEMORY_USAGE = { retentionDays: 7, maxEntities: 1000 } as const;

export const memory: StoreKind = {
  name: NAME,
  title: "memory:",
  schemes: [NAME],
  form: "memory:",
  parameters: {},
  options: usageOption(MEMORY_USAGE),
  traits: { isShared: false, createsItself: true, writesPerPartition: undefined },
  parse: ({ place, namespace, refusal }) => {
    if (place !== "") throw refusal(`"memory:" takes no name, got ${show(place)}`);
    return { kind: NAME, namespace };
  },
  address: () => "memory:",
  describe: () => NAME,
  open: async (location, options) => {
    const { openMemory } = await import("./open-memory.ts");
    return openMemory(location, options);
  },
};
