/** Amounts of limits as people write them: whole numbers, and with its sign where it is money. */

import { isMoney, signOf } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { readMoney } from "@zae-limiter/limiter/domain/money.ts";
import { UsageError } from "../frame/command.ts";

/** An amount of a limit: tokens, or micro-dollars. */
export interface Amount {
  readonly name: string;
  readonly tokens: number;
}

/**
 * Reads `rpm=1` or `usd=$0.05`, with another sign between the two where a command has one. An
 * amount of money without its sign is in millionths.
 */
export function readAmount(text: string, sign: "=" | ":", example: string): Amount {
  const at = text.indexOf(sign);
  const [name, amount] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
  if (name !== "" && /^\d+$/.test(amount) && Number.isSafeInteger(Number(amount))) {
    return { name, tokens: Number(amount) };
  }
  if (!isMoney(name)) {
    throw new UsageError(`expected a limit and a whole number, e.g. ${example}`);
  }
  if (amount.startsWith(signOf(name))) return { name, tokens: readMoney(text, name, amount) };
  const quoted = `'${name}${sign}${signOf(name)}5'`;
  if (signOf(name) !== "$") throw new UsageError(`expected money, such as ${quoted}`);
  const shell = `in double quotes a shell reads $5 as a name, and leaves ${name}${sign}`;
  throw new UsageError(`expected dollars in single quotes, such as ${quoted}; ${shell}`);
}
