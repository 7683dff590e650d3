/** Variables in the words of a shell. */

import { endpointOf, type LocalState, urlOf } from "./local-state.ts";

/** A shell by the name that users give it; `eval` is what the reference calls the first. */
export const SHELLS = ["bash", "zsh", "eval", "fish", "powershell", "direnv"] as const;
export type Shell = (typeof SHELLS)[number];

/** Variables that lead programs to the local DynamoDB. The table is known only while it runs. */
export function variablesOf(
  port: number,
  state: LocalState | undefined,
): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL: endpointOf({ port }),
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    // Empty is the same as absent: a real token does not go to whatever listens there.
    AWS_SESSION_TOKEN: "",
    // The AWS SDK for JavaScript reads the first, and the one for Python the second.
    AWS_REGION: "us-east-1",
    AWS_DEFAULT_REGION: "us-east-1",
    ...(state === undefined ? {} : { ZAEL_URL: urlOf(state) }),
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
