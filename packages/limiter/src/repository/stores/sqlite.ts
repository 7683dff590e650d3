/** `sqlite:<file>`, a store in a file that the processes of one machine share. */

import type { StoreAddress, StoreKind, StoreLocation } from "./store-kind.ts";
import { DURABLE_USAGE, usageOption } from "./usage-option.ts";

const NAME = "sqlite";

/** A store in a file. */
export interface FileLocation extends StoreLocation {
  readonly kind: typeof NAME;
  readonly path: string;
}

export const sqlite: StoreKind<FileLocation> = {
  name: NAME,
  title: "sqlite:",
  schemes: [NAME],
  form: "sqlite:<file>",
  parameters: {},
  options: usageOption(DURABLE_USAGE),
  traits: { isShared: true, createsItself: true, writesPerPartition: undefined },
  parse: (address) => ({ kind: NAME, path: pathIn(address), namespace: address.namespace }),
  address: ({ path }) => `sqlite:${path}`,
  describe: ({ path }) => path,
  open: async (location, options) => {
    const { openFile } = await import("./open-sqlite.ts");
    return openFile(location, options);
  },
};

/** Returns where the file of a store is; `undefined` for a store that is not a file. */
export function fileOf(location: StoreLocation): FileLocation | undefined {
  return location.kind === NAME ? (location as FileLocation) : undefined;
}

/** Returns the path in `sqlite:limits.db`, `sqlite:/var/limits.db` or `sqlite:///var/limits.db`. */
function pathIn({ place, refusal }: StoreAddress): string {
  const path = place.startsWith("//") ? place.slice(2) : place;
  if (path === "" || path.endsWith("/")) throw refusal("a file is missing after sqlite:");
  return path;
}
