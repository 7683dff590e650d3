/** Variables in the words of a shell. */

import { type LocalState, storeOf, urlOf } from "./local-state.ts";
import { storeByName } from "./stores/stores.ts";

/** A shell by the name that users give it; `eval` is what the reference calls the first. */
export const SHELLS = ["bash", "zsh", "eval", "fish", "powershell", "direnv"] as const;
export type Shell = (typeof SHELLS)[number];

/**
 * Variables that lead programs to a local store. What does not run is taken for a DynamoDB whose
 * table is not known; the AWS SDK finds only that kind of store by the environment.
 */
export function variablesOf(
  port: number,
  state: LocalState | undefined,
): Readonly<Record<string, string>> {
  const address = state === undefined ? undefined : { ZAEL_URL: urlOf(state) };
  if (state !== undefined && !storeOf(state).hasTables) return { ...address };
  return {
    AWS_ENDPOINT_URL: storeByName("dynamodb").endpoint(port),
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    // Empty is the same as absent: a real token does not go to whatever listens there.
    AWS_SESSION_TOKEN: "",
    // The AWS SDK for JavaScript reads the first, and the one for Python the second.
    AWS_REGION: "us-east-1",
    AWS_DEFAULT_REGION: "us-east-1",
    ...address,
  };
}

/** Returns one line for each variable, to be evaluated by a shell. */
export function shellLines(shell: Shell, variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => shellLine(shell, name, value))
    .join("\n");
}

function shellLine(shell: Shell, name: string, value: string): string {
  if (shell === "powershell") return `$env:${name} = "${value.replace(/[`"$]/g, "`$&")}"`;
  if (shell === "fish") return `set -gx ${name} ${fishWord(value)}`;
  // direnv reads what bash reads, in .envrc as well as in .env.
  return `export ${name}=${bashWord(value)}`;
}

const PLAIN_PATTERN = /^[\w./:@-]*$/;

function bashWord(value: string): string {
  return PLAIN_PATTERN.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

function fishWord(value: string): string {
  return value !== "" && PLAIN_PATTERN.test(value) ? value : `'${value.replace(/[\\']/g, "\\$&")}'`;
}
