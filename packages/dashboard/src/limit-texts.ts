/** Stored limits as the page gets them: texts, and words for what a text does not say. */

import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { limitWords } from "@zae-limiter/limiter/domain/quota-text.ts";
import type { LimitTextsJson } from "./wire.ts";

/** Returns the texts of limits, with when each comes back where a text could mean both. */
export function limitTexts(limits: readonly Limit[]): LimitTextsJson {
  const words = limits.flatMap((limit) => {
    const text = limitWords(limit);
    return text === "" ? [] : [[String(limit), text] as const];
  });
  return {
    limits: limits.map(String),
    ...(words.length === 0 ? {} : { words: Object.fromEntries(words) }),
  };
}

/** Returns a limit with its words, in one line. */
export function describedLimit(limit: Limit): string {
  const words = limitWords(limit);
  return words === "" ? String(limit) : `${limit}, ${words}`;
}
