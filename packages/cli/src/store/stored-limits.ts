/** What commands say about limits that were set, shown or deleted, whatever the level. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { Result } from "../frame/command.ts";
import { counted, limitLines } from "../terminal/limit-text.ts";
import { warningText } from "./lost-limits.ts";

/** The owner of limits, for JSON and for sentences. */
export interface Owner {
  readonly json: Readonly<Record<string, JsonValue>>;
  readonly name: string;
}

/** `lost` has a line for each entity that has less than before; people get it as a note. */
export function limitsSet(
  { json, name }: Owner,
  limits: readonly Limit[],
  lost: readonly string[],
  call: { readonly json: boolean; note(text: string): void },
): Result {
  if (!call.json) for (const line of lost) call.note(warningText(line));
  return {
    json: () => ({
      ...json,
      limits: limits.map((limit) => limit.toJSON()),
      warnings: [...lost],
    }),
    text: () => `Set ${counted(limits.length, "limit")} of ${name}:\n${limitLines(limits)}`,
  };
}

/** Asks, then deletes the limits; declining is not a failure, because nothing was lost. */
export async function deleteLimits(
  { json, name }: Owner,
  work: {
    confirm: (question: string) => Promise<boolean>;
    /** Deletes, and tells whether there was anything. */
    delete: () => Promise<boolean>;
  },
): Promise<Result> {
  const agreed = await work.confirm(`Delete the limits of ${name}?`);
  const deleted = agreed && (await work.delete());
  return {
    json: () => ({ ...json, deleted }),
    text: () => {
      if (!agreed) return "Cancelled: nothing was deleted";
      return deleted ? `Deleted the limits of ${name}` : `No limits were stored for ${name}`;
    },
  };
}
