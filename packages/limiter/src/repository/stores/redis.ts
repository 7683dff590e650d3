/** `redis://<host>` and `valkey://<host>`, a prefix on a server of Redis or Valkey. */

import { OBJECT } from "../../domain/options.ts";
import type { OpenOptions, RedisOptions } from "../options.ts";
import type { OpenOptionTable } from "./open-option.ts";
import type { StoreAddress, StoreKind, StoreLocation } from "./store-kind.ts";
import { DURABLE_USAGE, usageOption } from "./usage-option.ts";

const NAME = "redis";

/** A prefix on a server. */
export interface PrefixLocation extends StoreLocation {
  readonly kind: typeof NAME;
  /** The address for a client, with its credentials. */
  readonly connection: string;
  /** The address for messages: host, port and number of the database. */
  readonly place: string;
  /** Begins all keys; the default one when `undefined`. */
  readonly prefix: string | undefined;
}

const OPTIONS = {
  ...usageOption(DURABLE_USAGE),
  tls: {
    check: OBJECT,
    doc: "options of TLS for the client, such as `ca`; they hold for `rediss:` and `valkeys:`",
  },
} as const satisfies OpenOptionTable<Pick<RedisOptions, "usage" | "tls">>;

export const redis: StoreKind<PrefixLocation, OpenOptions & RedisOptions> = {
  name: NAME,
  title: "Redis",
  schemes: [NAME, "rediss", "valkey", "valkeys"],
  form: "redis://<host>",
  parameters: { prefix: "<prefix>" },
  options: OPTIONS,
  traits: { isShared: true, createsItself: true, writesPerPartition: undefined },
  parse: (address) => {
    const url = urlIn(address);
    const place = `${url.protocol}//${url.host}${url.pathname === "/" ? "" : url.pathname}`;
    const { namespace, parameters } = address;
    return { kind: NAME, connection: url.href, place, prefix: parameters["prefix"], namespace };
  },
  address: ({ connection, prefix }) => {
    const url = new URL(connection);
    if (prefix !== undefined) url.searchParams.set("prefix", prefix);
    return url.href;
  },
  describe: ({ place, prefix }) => (prefix === undefined ? place : `${place} (prefix ${prefix})`),
  open: async (location, options) => {
    const { openRedis } = await import("./open-redis.ts");
    return openRedis(location, options);
  },
};

/** Returns the address without parameters; the error of a wrong one must not show its password. */
function urlIn({ scheme, place, refusal }: StoreAddress): URL {
  const secure = scheme.endsWith("s") && scheme !== NAME;
  const text = `${secure ? "rediss" : NAME}:${place}`;
  if (!place.startsWith("//")) throw refusal(`two slashes are missing after ${scheme}:`);
  if (!URL.canParse(text)) throw refusal("the host or port cannot be read");
  const url = new URL(text);
  if (url.host === "") throw refusal("the host is missing");
  if (!/^\/?\d{0,4}$/.test(url.pathname)) throw refusal("the database is not a number");
  return url;
}
