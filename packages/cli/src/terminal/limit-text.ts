/** Limits as people read them: `tpm: 10,000/min (burst: 15,000)`. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { OptionSpec, Shape } from "../frame/command.ts";
import { withThousands } from "./numbers.ts";

/** `-l`, as all commands have it that store limits. */
export const LIMITS_OPTION: OptionSpec = {
  flags: "-l, --limit <limit>",
  text:
    "name:rate[/period][:burst][ soft], e.g. rpm:100, tpm:10000/min:15000, 'tpm:500 soft'; " +
    "repeatable",
  required: true,
  repeat: true,
};

/** The form of a limit in JSON. */
export const LIMIT_SHAPE: Shape = {
  name: "text",
  capacity: "number",
  refill_amount: "number",
  refill_period_seconds: "number",
  "soft?": "boolean",
};

/** Reads the values of `-l`, before anything is opened. */
export function parseLimits(texts: readonly string[]): Limit[] {
  return texts.map((text) => Limit.parse(text));
}

export function limitText(limit: Limit): string {
  const burst =
    limit.capacity === limit.refillAmount ? "" : ` (burst: ${withThousands(limit.capacity)})`;
  const soft = limit.soft ? ", soft" : "";
  return `${limit.name}: ${rateText(limit)}${burst}${soft}`;
}

/** Returns `10,000/min`. */
export function rateText(limit: Limit): string {
  const period = String(limit).split(":")[1]?.split("/")[1]?.split(" ")[0] ?? "";
  return `${withThousands(limit.refillAmount)}/${period}`;
}

/** Returns one indented line for each limit. */
export function limitLines(limits: readonly Limit[]): string {
  return limits.map((limit) => `  ${limitText(limit)}`).join("\n");
}

/** Returns `1 limit`, `2 limits`. */
export function counted(count: number, word: string): string {
  return `${withThousands(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** Returns how many entries of a limits file there are. */
export function entriesText(count: number): string {
  return `${withThousands(count)} ${count === 1 ? "entry" : "entries"}`;
}
