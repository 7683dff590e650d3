/** Commands that messages suggest, with the options that lead to the store the user named. */

import { tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import {
  parseStoreUrl,
  withoutCredentials,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { StoreOptions } from "../store/store-options.ts";

/** A stack on AWS, as the options of the `stack` commands name it. */
export interface NamedStack {
  readonly name: string;
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

/** Returns a command for the same store and namespace as `options`. */
export function namespaceHint(words: readonly string[], options: StoreOptions): string {
  const { namespace } = options;
  // `deploy` takes several namespaces to register; no suggested command works on those.
  const named = typeof namespace === "string" ? ["--namespace", namespace] : [];
  return `${storeHint(words, options)}${joined(named)}`;
}

/** Returns a command for the same store as `options`, without a namespace. */
export function storeHint(words: readonly string[], options: StoreOptions): string {
  const { url, table, name, region, endpointUrl } = options;
  const flags = [
    // A message may end in a log, which must not have the password.
    ...flag("--url", url && withoutCredentials(url)),
    ...flag("--table", table ?? name),
    ...flag("--region", region),
    ...flag("--endpoint-url", endpointUrl),
  ];
  return commandLine([...words, ...flags]);
}

/** Returns the words as a line to paste into a shell. */
export function commandLine(words: readonly string[]): string {
  return `${programName(process.env)}${joined(words)}`;
}

/** Returns how this program is started: by npm, which finds it in a project, or by its name. */
export function programName({ npm_command }: Readonly<Record<string, string | undefined>>): string {
  return npm_command === undefined || npm_command === "" ? "zae-limiter" : "npx zae-limiter";
}

/** Returns a command for a stack. Its name is always written out. */
export function stackHint(words: readonly string[], stack: NamedStack): string {
  const flags = [
    "--name",
    stack.name,
    ...flag("--region", stack.region),
    ...flag("--endpoint-url", stack.endpoint),
  ];
  return commandLine(["stack", ...words, ...flags]);
}

/** Returns the stack of that name where `options` lead. */
export function stackAt(
  name: string,
  options: Pick<StoreOptions, "url" | "region" | "endpointUrl">,
): NamedStack {
  const { url, region, endpointUrl } = options;
  const address = url === undefined ? undefined : tableOf(parseStoreUrl(url));
  return {
    name,
    region: region ?? address?.region,
    endpoint: endpointUrl ?? address?.endpoint,
  };
}

function flag(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value];
}

function joined(words: readonly string[]): string {
  return words.map((word) => ` ${quoted(word)}`).join("");
}

/** Quotes a word for a shell where it needs quotes. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
