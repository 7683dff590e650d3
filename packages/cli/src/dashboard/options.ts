/** Options of commands that serve a page, and the check of its token. */

import { isLoopback } from "@zae-limiter/limiter/base/loopback.ts";
import { type OptionSpec, UsageError } from "../frame/command.ts";
import { wholeNumber } from "../terminal/numbers.ts";

export interface DashboardFlags {
  readonly port: number;
  readonly host: string;
  readonly open: boolean;
}

export const DASHBOARD_PORT = 4983;

export const DASHBOARD_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "--port <n>",
    text: "port to listen on; 0: any that is free",
    default: DASHBOARD_PORT,
    parse: wholeNumber(0, 65_535),
  },
  { flags: "--host <address>", text: "address to listen on", default: "127.0.0.1" },
  { flags: "--no-open", text: "do not open a browser" },
];

const TOKEN_MIN = 16;

/** Returns the token as given; refuses a weak one, and none where other machines reach the page. */
export function checkedToken(host: string, token: string | undefined): string | undefined {
  if (token === undefined) {
    const name = host.includes(":") ? `[${host}]` : host;
    if (isLoopback(`http://${name}`)) return undefined;
    throw new UsageError(
      "An address that other machines reach needs --token: pass a secret of at least 16 characters",
    );
  }
  if (/^[\w-]+$/.test(token) && token.length >= TOKEN_MIN) return token;
  throw new UsageError("Expected --token to have at least 16 letters, digits, hyphens and _");
}
