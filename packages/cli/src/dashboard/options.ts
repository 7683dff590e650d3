/** Options of commands that serve the dashboard. */

import type { OptionSpec } from "../frame/command.ts";
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
