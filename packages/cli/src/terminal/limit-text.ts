/** Limits as people read them: `tpm: 10,000/min (burst: 15,000)`. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { parseLimit } from "@zae-limiter/limiter/domain/limit-language.ts";
import { periodDisagreement } from "@zae-limiter/limiter/domain/limit-period.ts";
import { limitWords, printRule } from "@zae-limiter/limiter/domain/quota-text.ts";
import { type OptionSpec, type Shape, UsageError } from "../frame/command.ts";
import { shownAmount, withThousands } from "./numbers.ts";

/** `-l`, as all commands have it that store limits. */
export const LIMITS_OPTION: OptionSpec = {
  flags: "-l, --limit <limit>",
  text:
    "name:rate[/period][:burst][ soft], e.g. rpm:100, tpm:10k/min:15k, 'tpd:500 soft', " +
    "a quota, e.g. 'req:10k/month Europe/Berlin', ses:400k/session:5hour, " +
    "or slots, 'parallel:20 concurrent'; a quota may end in 'alerts 50,80,100'; repeatable",
  required: true,
  repeat: true,
};

/** `--soft`, the Python library's way to say what `soft` in a limit says. */
export const SOFT_OPTION: OptionSpec = {
  flags: "--soft <name>",
  text: "make this limit of -l soft, as 'name:rate soft' does; repeatable",
  repeat: true,
};

/** `--replace-kind`, as all commands have it that replace limits. */
export const REPLACE_KIND_OPTION: OptionSpec = {
  flags: "--replace-kind",
  text: "let a limit of another kind replace a stored one, such as a rate a quota",
};

/** The form of a limit in JSON. */
export const LIMIT_SHAPE: Shape = {
  name: "text",
  capacity: "number",
  refill_amount: "number",
  refill_period_seconds: "number",
  "soft?": "boolean",
  "quota?": "object",
  "session_seconds?": "number",
  "concurrent?": "boolean",
  "alerts?": ["number"],
  "schedule?": ["object"],
};

/**
 * Reads the values of `-l` and of `--soft`, before anything is opened. Commands print warnings
 * themselves.
 */
export function parseLimits(texts: readonly string[], soft: readonly string[] = []): Limit[] {
  const limits = texts.map((text) => Limit.custom(parseLimit(text)));
  const unknown = soft.find((name) => !limits.some((limit) => limit.name === name));
  if (unknown !== undefined) {
    throw new UsageError(`--soft names ${unknown}, which no -l declares`);
  }
  return limits.map((limit) =>
    soft.includes(limit.name) ? Limit.fromJSON({ ...limit.toJSON(), soft: true }) : limit,
  );
}

/** Returns a line as a warning for people. */
export function warningText(line: string): string {
  return `Warning: ${line}`;
}

/** Returns one line for each limit whose name states another period than it has. */
export function nameWarnings(limits: readonly Limit[]): string[] {
  return limits.flatMap((limit) => periodDisagreement(limit) ?? []);
}

/** Returns a limit as a line, with how it comes back where a text could mean both. */
export function limitText(limit: Limit): string {
  const burst =
    limit.kind !== "rate" || limit.capacity === limit.refillAmount
      ? ""
      : ` (burst: ${shownAmount(limit.name, limit.capacity)})`;
  const soft = limit.soft ? ", soft" : "";
  const alerts = limit.alerts.length === 0 ? "" : `, alerts at ${limit.alerts.join(", ")} %`;
  const words = limitWords(limit);
  const more = `${words === "" ? "" : `, ${words}`}${soft}${alerts}`;
  return `${limit.name}: ${rateText(limit)}${burst}${more}`;
}

/** Returns `10,000/min`, `10,000/month Europe/Berlin` or `20 concurrent`. */
export function rateText(limit: Limit): string {
  if (limit.kind === "concurrency") return `${withThousands(limit.capacity)} concurrent`;
  if (limit.rule !== undefined) {
    return shownAmount(limit.name, limit.capacity) + printRule(limit.rule);
  }
  const period = String(limit).split(":")[1]?.split("/")[1]?.split(" ")[0] ?? "";
  return `${shownAmount(limit.name, limit.refillAmount)}/${period}`;
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
