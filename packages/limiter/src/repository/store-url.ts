/** The addresses of stores: `memory:`, `sqlite:<file>`, `dynamodb://<table>?region=…`. */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkStackName } from "../domain/names.ts";

/** Where a store is. */
export type StoreLocation =
  | { readonly kind: "memory"; readonly namespace: string | undefined }
  | { readonly kind: "sqlite"; readonly path: string; readonly namespace: string | undefined }
  | {
      readonly kind: "dynamodb";
      readonly table: string;
      readonly region: string | undefined;
      readonly endpoint: string | undefined;
      readonly namespace: string | undefined;
    };

export const DEFAULT_URL = "sqlite:.zae-limiter/limits.db";

const FORMS =
  "memory: | sqlite:<file> | dynamodb://<table>?region=<region>&endpoint=<url>, " +
  "each with an optional ?namespace=<name>";

/** Reads an address; a `ValidationError` names the accepted forms. */
export function parseStoreUrl(url: string): StoreLocation {
  if (typeof url !== "string") throw refusal(url, `got ${show(url)}`);
  const [address = "", ...rest] = url.split("?");
  const parameters = new URLSearchParams(rest.join("?"));
  const [scheme, place] = split(address);
  switch (scheme) {
    case "memory":
      if (place !== "") throw refusal(url, `"memory:" takes no name, got ${show(place)}`);
      return { kind: "memory", ...parametersOf(url, parameters, ["namespace"]) };
    case "sqlite":
      return {
        kind: "sqlite",
        path: sqlitePath(url, place),
        ...parametersOf(url, parameters, ["namespace"]),
      };
    case "dynamodb": {
      const table = tableName(url, place);
      const found = parametersOf(url, parameters, ["namespace", "region", "endpoint"]);
      if (found.endpoint !== undefined) checkEndpoint(found.endpoint);
      return { kind: "dynamodb", table, ...found };
    }
    default:
      throw refusal(url, `got ${show(url)}`);
  }
}

/** Returns a table whose region and endpoint are options, or found as the AWS SDK does. */
export function tableAt(table: string): Extract<StoreLocation, { kind: "dynamodb" }> {
  const place = { region: undefined, endpoint: undefined, namespace: undefined };
  return { kind: "dynamodb", table, ...place };
}

/** Checks that an endpoint is a web address. */
export function checkEndpoint(endpoint: string): string {
  const valid = typeof endpoint === "string" && /^https?:\/\/[^/\s]+/.test(endpoint);
  if (valid && URL.canParse(endpoint)) return endpoint;
  throw new ValidationError(
    "endpoint",
    endpoint,
    `expected a web address like http://127.0.0.1:8000, got ${show(endpoint)}`,
  );
}

function split(address: string): [scheme: string, place: string] {
  const colon = address.indexOf(":");
  if (colon < 0) return ["", address];
  return [address.slice(0, colon).toLowerCase(), address.slice(colon + 1)];
}

/** Returns the path in `sqlite:limits.db`, `sqlite:/var/limits.db` or `sqlite:///var/limits.db`. */
function sqlitePath(url: string, place: string): string {
  const path = place.startsWith("//") ? place.slice(2) : place;
  if (path === "" || path.endsWith("/")) throw refusal(url, "a file is missing after sqlite:");
  return path;
}

function tableName(url: string, place: string): string {
  if (!place.startsWith("//")) throw refusal(url, `got ${show(url)}`);
  const table = place.slice(2).replace(/\/$/, "");
  if (table === "") throw refusal(url, "a table is missing after dynamodb://");
  return checkStackName(table);
}

function parametersOf<Name extends string>(
  url: string,
  parameters: URLSearchParams,
  accepted: readonly Name[],
): Record<Name, string | undefined> {
  for (const name of parameters.keys()) {
    if (!(accepted as readonly string[]).includes(name)) {
      throw refusal(url, `the parameter ${show(name)} is not one of ${accepted.join(", ")}`);
    }
    if (parameters.getAll(name).length > 1) throw refusal(url, `"${name}" is given twice`);
    if (parameters.get(name) === "") throw refusal(url, `"${name}" is empty`);
  }
  return Object.fromEntries(
    accepted.map((name) => [name, parameters.get(name) ?? undefined]),
  ) as Record<Name, string | undefined>;
}

function refusal(url: unknown, detail: string): ValidationError {
  return new ValidationError("url", url, `expected ${FORMS}; ${detail}`);
}
