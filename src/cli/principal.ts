/** The principal of a change, for the audit log. */

import type { OptionSpec } from "./command.ts";

export const PRINCIPAL_OPTION: OptionSpec = {
  flags: "--principal <name>",
  text: "principal of the change, for the audit log",
};

export interface PrincipalOptions {
  readonly principal?: string;
}

export function principalOf({ principal }: PrincipalOptions): { principal?: string } {
  return principal === undefined ? {} : { principal };
}
