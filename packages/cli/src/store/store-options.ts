/** The options that name a store, and the place they mean. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import {
  checkNamespace,
  checkStackName,
  DEFAULT_NAMESPACE,
  DEFAULT_STACK,
} from "@zae-limiter/limiter/domain/names.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import {
  checkEndpoint,
  type TableLocation,
  tableAt,
  tableOf,
} from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import {
  DEFAULT_URL,
  parseStoreUrl,
  placeName,
  STORES,
  type StoreLocation,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import { CommandFailure, type OptionSpec, UsageError } from "../frame/command.ts";
import { decimalNumber } from "../terminal/numbers.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** A person waits longer than a program, and a first call has to find credentials and connect. */
const TIMEOUT_SECONDS = 10;

export interface StoreOptions {
  readonly url?: string;
  readonly table?: string;
  /** An earlier spelling of `table`. */
  readonly name?: string;
  readonly region?: string;
  readonly endpointUrl?: string;
  readonly namespace?: string;
  readonly timeout?: number;
}

/** A stack on AWS, by name; commands that deploy and maintain it have these options, too. */
export const STACK_OPTIONS: readonly OptionSpec[] = [
  { flags: "-n, --name <name>", text: "table on DynamoDB (ZAEL_STACK, else zae-limiter)" },
  { flags: "--region <region>", text: "region of the table (else as the AWS SDK finds it)" },
  { flags: "--endpoint-url <url>", text: "endpoint of a local DynamoDB, or a private one" },
];

export const STORE_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "--url <url>",
    text: `store: ${storeForms().join(", ")} (ZAEL_URL)`,
  },
  { flags: "--table <name>", text: "table on DynamoDB (ZAEL_STACK, else zae-limiter)" },
  { flags: "-n, --name <name>", text: "an earlier spelling of --table" },
  ...STACK_OPTIONS.slice(1),
  {
    flags: "--timeout <seconds>",
    text: "how long the store may take to answer",
    default: TIMEOUT_SECONDS,
    parse: decimalNumber(0.001, 3600),
  },
];

/** Returns the forms of addresses, those first that keep something for the next command. */
function storeForms(): string[] {
  const lasting = STORES.filter(({ traits }) => traits.isShared);
  const others = STORES.filter(({ traits }) => !traits.isShared);
  return [...lasting, ...others].map(({ form, parameters }) => {
    const [first] = Object.keys(parameters);
    return first === undefined ? form : `${form}?${first}=…`;
  });
}

export const NAMESPACE_OPTION: OptionSpec = {
  flags: "-N, --namespace <name>",
  text: "namespace (ZAEL_NAMESPACE, else default)",
};

export interface StorePlace {
  readonly location: StoreLocation;
  readonly namespace: string;
  readonly options: DynamoOptions;
  /** Explanation of an option that its author may mean otherwise. */
  readonly remark?: string;
}

/**
 * Returns the store of `--url`, of `--table`, `--region` and `--endpoint-url`, of `ZAEL_URL`, of
 * `ZAEL_STACK`, or the file in this folder.
 */
export function storePlace(options: StoreOptions, terminal: Terminal): StorePlace {
  const { env, clock } = terminal;
  const location = locate(options, env);
  const namespace =
    options.namespace ?? location.namespace ?? present(env.ZAEL_NAMESPACE) ?? DEFAULT_NAMESPACE;
  return {
    location,
    namespace: checkNamespace(namespace),
    options: {
      timeoutMs: Math.ceil((options.timeout ?? TIMEOUT_SECONDS) * 1000),
      ...(clock === undefined ? {} : { clock }),
    },
    ...defined({ remark: remarkOn(options, env) }),
  };
}

/** Explains `--name` where nothing else says that the store is a table. */
function remarkOn(options: StoreOptions, env: Terminal["env"]): string | undefined {
  const { table, name, region, endpointUrl } = options;
  if (name === undefined || table !== undefined) return undefined;
  const elsewhere = locate({}, env);
  const others = [region, endpointUrl, tableOf(elsewhere)];
  if (others.some((other) => other !== undefined)) return undefined;
  const meant = `the table ${name} on DynamoDB, not ${placeName(elsewhere)}`;
  return `--name means --table: ${meant}. A name for people is --display-name`;
}

function locate(options: StoreOptions, env: Terminal["env"]): StoreLocation {
  const { url, region } = options;
  const name = tableIn(options);
  if (url !== undefined && name !== undefined) {
    const other = options.table === undefined ? "--name" : "--table";
    throw new UsageError(`--url and ${other} both name a store; give one of them`);
  }
  const given = url ?? present(env.ZAEL_URL);
  const base = given === undefined ? undefined : parseStoreUrl(given);
  const table = base && tableOf(base);
  const endpoint =
    options.endpointUrl === undefined ? undefined : checkEndpoint(options.endpointUrl);
  const onDynamo = [name, region, endpoint].some((option) => option !== undefined);
  if (url !== undefined && onDynamo && table === undefined) {
    throw new UsageError("--region and --endpoint-url are for DynamoDB, and --url is not");
  }
  const stack = present(env.ZAEL_STACK);
  if (!onDynamo && base !== undefined) return base;
  if (!onDynamo && stack === undefined) return parseStoreUrl(DEFAULT_URL);
  return onTable(table, { name, region, endpoint }, stack ?? DEFAULT_STACK);
}

/** Returns the table that the options name by either spelling. */
export function tableIn({ table, name }: StoreOptions): string | undefined {
  if (table !== undefined && name !== undefined && table !== name) {
    throw new UsageError("--table and --name both name a table; give one of them");
  }
  return table ?? name;
}

/** Returns the stack that is named, else the one in the environment, else the default one. */
export function stackNameOf(given: string | undefined, env: Terminal["env"]): string {
  return checkStackName(given ?? present(env.ZAEL_STACK) ?? DEFAULT_STACK);
}

/** Returns the table that the options name; the rest comes from the address, if on DynamoDB. */
function onTable(
  address: TableLocation | undefined,
  options: { name: string | undefined; region: string | undefined; endpoint: string | undefined },
  fallback: string,
): StoreLocation {
  return tableAt(checkTable(options.name ?? address?.table ?? fallback), {
    region: options.region ?? address?.region,
    endpoint: options.endpoint ?? address?.endpoint,
    namespace: address?.namespace,
  });
}

function checkTable(name: string): string {
  try {
    return checkStackName(name);
  } catch (error) {
    const advice = "A table on DynamoDB is meant; a name for people is --display-name";
    throw new CommandFailure(`${(error as Error).message}. ${advice}`, 1, { cause: error });
  }
}

/** Returns a variable that has a value; an empty one counts as not set. */
function present(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
