/** Who makes a change, for the audit log. */

import type { OptionSpec } from "./command.ts";

export const PRINCIPAL_OPTION: OptionSpec = {
  flags: "--principal <who>",
  text: "who makes the change, for the audit log",
};

export interface PrincipalOptions {
  readonly principal?: string;
}

export function principalOf({ principal }: PrincipalOptions): { principal?: string } {
  return principal === undefined ? {} : { principal };
}
