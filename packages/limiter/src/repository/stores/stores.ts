/**
 * The list of stores: `memory:`, `sqlite:<file>`, `postgres://…`, `redis://…`, `dynamodb://…`.
 * Everything that depends on the kind of a store is a question to its entry here.
 */

import { show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import type { StoreTraits } from "../backend.ts";
import type { DynamoOptions, MigrateOptions, OpenOptions } from "../options.ts";
import { dynamodb } from "./dynamodb.ts";
import { memory } from "./memory.ts";
import { checkOpenTable } from "./open-option.ts";
import { postgres } from "./postgres.ts";
import { redis } from "./redis.ts";
import { CUSTOM_OPTIONS, SHARED_OPTIONS } from "./shared-options.ts";
import { sqlite } from "./sqlite.ts";
import type { StoreAddress, StoreKind, StoreLocation } from "./store-kind.ts";

export type { StoreLocation } from "./store-kind.ts";

/** Every kind of store that an address can name, in the order in which messages list them. */
export const STORES: readonly StoreKind[] = [memory, sqlite, postgres, redis, dynamodb];

export const DEFAULT_URL = "sqlite:.zae-limiter/limits.db";

/** A parameter that no store takes, and that must not be shown. */
const SECRET = "password=";

/** Parameters that a message lists; of more, it names the first. */
const PARAMETERS_SHOWN = 2;

/** The names of all options of `open`, on any store. */
export const STORE_OPTIONS: readonly string[] = [
  ...new Set([SHARED_OPTIONS, ...STORES.map(({ options }) => options)].flatMap(Object.keys)),
];

/** Reads an address; a `ValidationError` names the accepted forms. */
export function parseStoreUrl(url: string): StoreLocation {
  if (typeof url !== "string") throw refusal(url, `got ${show(url)}`);
  const [address = "", ...rest] = url.split("?");
  const [scheme, place] = split(address);
  const kind = STORES.find(({ schemes }) => schemes.includes(scheme));
  if (kind === undefined) throw refusal(url, `got ${show(withoutCredentials(url))}`);
  return kind.parse({
    scheme,
    place,
    ...parametersOf(url, new URLSearchParams(rest.join("?")), Object.keys(kind.parameters)),
    refusal: (detail) => refusal(url, detail),
  });
}

/** Returns the address of a store without its namespace, with credentials: not for messages. */
export function urlOf(location: StoreLocation): string {
  return kindOf(location).address(location);
}

/** Returns the name of a store for messages, without credentials. */
export function placeName(location: StoreLocation): string {
  return kindOf(location).describe(location);
}

export function traitsOf(location: StoreLocation): StoreTraits {
  return kindOf(location).traits;
}

/** Returns whether a store counts usage itself, so that it needs no aggregator. */
export function countsUsage(location: StoreLocation): boolean {
  return Object.hasOwn(kindOf(location).options, "usage");
}

/** Refuses options that the store at a location does not have, and values out of range. */
export function checkOpenOptions(options: DynamoOptions, location: StoreLocation): void {
  checkOpenTable(options, { ...SHARED_OPTIONS, ...kindOf(location).options }, STORES);
}

/** Refuses options that a store of the caller's does not have, and values out of range. */
export function checkCustomOptions(options: OpenOptions): void {
  checkOpenTable(options, { ...SHARED_OPTIONS, ...CUSTOM_OPTIONS }, STORES);
}

/** Creates or upgrades the schema of a store; `undefined` where the store has none. */
export async function migrateStore(
  location: StoreLocation,
  options: MigrateOptions,
): Promise<{ from: number; to: number } | undefined> {
  const kind = kindOf(location);
  return kind.migrate?.(location, options);
}

/** Returns the entry of the list that a location belongs to. */
export function kindOf({ kind }: StoreLocation): StoreKind {
  const found = STORES.find(({ name }) => name === kind);
  if (found !== undefined) return found;
  const names = STORES.map(({ name }) => name).join(", ");
  throw new ValidationError("kind", kind, `expected one of ${names}, got ${show(kind)}`);
}

function split(address: string): [scheme: string, place: string] {
  const colon = address.indexOf(":");
  if (colon < 0) return ["", address];
  return [address.slice(0, colon).toLowerCase(), address.slice(colon + 1)];
}

function parametersOf(
  url: string,
  found: URLSearchParams,
  own: readonly string[],
): Pick<StoreAddress, "parameters" | "namespace"> {
  const accepted = ["namespace", ...own];
  for (const name of found.keys()) {
    if (!accepted.includes(name)) {
      throw refusal(url, `the parameter ${show(name)} is not one of ${accepted.join(", ")}`);
    }
    if (found.getAll(name).length > 1) throw refusal(url, `"${name}" is given twice`);
    if (found.get(name) === "") throw refusal(url, `"${name}" is empty`);
  }
  const parameters = Object.fromEntries(own.map((name) => [name, found.get(name) ?? undefined]));
  return { parameters, namespace: found.get("namespace") ?? undefined };
}

function refusal(url: unknown, detail: string): ValidationError {
  const forms = STORES.map(({ form, parameters }) => {
    const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
    const shown = pairs.length > PARAMETERS_SHOWN ? [...pairs.slice(0, 1), "…"] : pairs;
    return pairs.length === 0 ? form : `${form}?${shown.join("&")}`;
  });
  const each = "each with an optional ?namespace=<name>";
  const shown = typeof url === "string" ? withoutCredentials(url) : url;
  return new ValidationError("url", shown, `expected ${forms.join(" | ")}, ${each}; ${detail}`);
}

/** Hides what may be a password in an address, also in one that cannot be read. */
export function withoutCredentials(url: string): string {
  const colon = url.indexOf(":");
  const at = url.lastIndexOf("@");
  const shown = colon >= 0 && at > colon ? `${url.slice(0, colon)}://…${url.slice(at)}` : url;
  const secret = shown.toLowerCase().indexOf(SECRET);
  return secret < 0 ? shown : `${shown.slice(0, secret + SECRET.length)}…`;
}
