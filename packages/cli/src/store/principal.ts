/** The principal of a change, for the audit log. */

import { hostname, userInfo } from "node:os";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { checkPrincipal } from "@zae-limiter/limiter/domain/names.ts";
import { type OptionSpec, UsageError } from "../frame/command.ts";

export const PRINCIPAL_OPTION: OptionSpec = {
  flags: "--principal <name>",
  text: "principal of the change, for the audit log (ZAEL_PRINCIPAL, else user@host)",
};

export interface PrincipalOptions {
  readonly principal?: string;
}

export function principalOf({ principal }: PrincipalOptions): PrincipalOptions {
  return defined({ principal });
}

const ID_LENGTH_MAX = 256;

/**
 * Returns `ZAEL_PRINCIPAL`, else `user@host` in the characters of an id; `undefined` where the
 * system knows neither.
 */
export function defaultPrincipal(
  env: Readonly<Record<string, string | undefined>>,
  self: () => string = userAtHost,
): string | undefined {
  const given = env.ZAEL_PRINCIPAL;
  if (given !== undefined && given !== "") {
    try {
      return checkPrincipal(given);
    } catch (error) {
      throw new UsageError(`Invalid ZAEL_PRINCIPAL: ${(error as Error).message}`);
    }
  }
  const name = self()
    .replaceAll(/[^\w.\-:@]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "");
  return name === "" ? undefined : name.slice(0, ID_LENGTH_MAX);
}

function userAtHost(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A user without an entry in the system's list has no name.
    return hostname();
  }
}
