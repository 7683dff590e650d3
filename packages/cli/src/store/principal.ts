/** The principal of a change, for the audit log. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { OptionSpec } from "../frame/command.ts";

export const PRINCIPAL_OPTION: OptionSpec = {
  flags: "--principal <name>",
  text: "principal of the change, for the audit log",
};

export interface PrincipalOptions {
  readonly principal?: string;
}

export function principalOf({ principal }: PrincipalOptions): PrincipalOptions {
  return defined({ principal });
}
