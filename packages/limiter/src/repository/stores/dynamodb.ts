/** `dynamodb://<table>`, a table on DynamoDB. Opening one never creates it. */

import { defined } from "../../base/defined.ts";
import { WRITES_PER_PARTITION } from "../../buckets/distributed/table-traits.ts";
import { show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkStackName } from "../../domain/names.ts";
import { ANY, OBJECT, oneOf, TEXT, whole } from "../../domain/options.ts";
import type { DynamoOptions, OpenOptions } from "../options.ts";
import type { OpenOptionTable } from "./open-option.ts";
import type { StoreAddress, StoreKind, StoreLocation } from "./store-kind.ts";

const NAME = "dynamodb";

/** A table on DynamoDB. */
export interface TableLocation extends StoreLocation {
  readonly kind: typeof NAME;
  readonly table: string;
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
}

const OPTIONS = {
  region: { check: TEXT, doc: "the region of the table" },
  endpoint: {
    check: (_, value) => checkEndpoint(value),
    doc: "a local DynamoDB, or a private endpoint",
  },
  credentials: { check: ANY, doc: "credentials, or a provider of them" },
  requestHandler: {
    check: OBJECT,
    doc: "a handler of the AWS SDK; all requests then go through the SDK",
  },
  maxAttempts: {
    check: whole(1, 100),
    doc: "the most attempts of one request",
  },
  transport: {
    check: oneOf("lean", "sdk"),
    default: "lean",
    doc: "`sdk` sends all requests through the AWS SDK",
  },
  outdatedLambda: {
    check: oneOf("accept", "refuse"),
    default: "accept",
    doc: "`refuse`: opening throws when the deployed aggregator is older than the client",
  },
} as const satisfies OpenOptionTable<Omit<DynamoOptions, keyof OpenOptions>>;

export const dynamodb: StoreKind<TableLocation, DynamoOptions> = {
  name: NAME,
  title: "DynamoDB",
  schemes: [NAME],
  form: "dynamodb://<table>",
  parameters: { region: "<region>", endpoint: "<url>" },
  options: OPTIONS,
  traits: { isShared: true, createsItself: false, writesPerPartition: WRITES_PER_PARTITION },
  parse: (address) => {
    const { region, endpoint } = address.parameters;
    const table = tableIn(address);
    if (endpoint !== undefined) checkEndpoint(endpoint);
    return { kind: NAME, table, region, endpoint, namespace: address.namespace };
  },
  address: ({ table, region, endpoint }) =>
    `dynamodb://${table}?${new URLSearchParams(defined({ region, endpoint }))}`,
  describe: ({ table }) => `the table ${table}`,
  open: async (location, options) => {
    const { openTable } = await import("./open-dynamodb.ts");
    return openTable(location, options);
  },
};

/** Returns where the table of a store is; `undefined` for a store that is not on DynamoDB. */
export function tableOf(location: StoreLocation): TableLocation | undefined {
  return location.kind === NAME ? (location as TableLocation) : undefined;
}

/** Returns the place of a table; what is not given is an option, or found as the AWS SDK does. */
export function tableAt(
  table: string,
  place: Partial<Pick<TableLocation, "region" | "endpoint" | "namespace">> = {},
): TableLocation {
  const { region, endpoint, namespace } = place;
  return { kind: NAME, table, region, endpoint, namespace };
}

/** Checks that an endpoint is a web address. */
export function checkEndpoint(endpoint: unknown): string {
  const isAddress = typeof endpoint === "string" && /^https?:\/\/[^/\s]+/.test(endpoint);
  if (isAddress && URL.canParse(endpoint)) return endpoint;
  throw new ValidationError(
    "endpoint",
    endpoint,
    `expected a web address like http://127.0.0.1:8000, got ${show(endpoint)}`,
  );
}

function tableIn({ place, refusal }: StoreAddress): string {
  if (!place.startsWith("//")) throw refusal(`got ${show(`dynamodb:${place}`)}`);
  const table = place.slice(2).replace(/\/$/, "");
  if (table === "") throw refusal("a table is missing after dynamodb://");
  return checkStackName(table);
}
