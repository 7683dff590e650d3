/** Which of the stored limits apply: the most specific level that has any, as a whole. */

import type { UnsupportedLimit } from "./errors/unsupported-limit.ts";
import type { Limit } from "./limit.ts";

/**
 * Levels that limits can be stored at, from specific to general. Those of the parent are what it
 * stores for the entities directly below it.
 */
export const CONFIG_LEVELS = [
  "entity",
  "entity_default",
  "parent",
  "parent_default",
  "resource",
  "system",
] as const;

/**
 * The level that the limits of a call came from.
 *
 * @example
 * ```ts
 * import { Repository, type ConfigSource } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.setSystem(['rpm:100']);
 * const resolved = await repo.limits.resolve('key-1', 'gpt-4');
 * const source: ConfigSource | undefined = resolved?.source;
 * console.log(source); // system
 * await repo.close();
 * ```
 */
export type ConfigSource = (typeof CONFIG_LEVELS)[number];

/** Limits with the level they came from. */
interface ChosenLimits {
  readonly limits: readonly Limit[];
  /** Limits of the level that this version cannot enforce. */
  readonly unsupported: readonly UnsupportedLimit[];
  readonly source: ConfigSource;
}

/** The limits of one level. */
interface LevelLimits {
  readonly limits: readonly Limit[];
  readonly unsupported?: readonly UnsupportedLimit[];
}

/** Returns the limits of the first level that has any; an empty level counts as absent. */
export function chooseLimits(
  limitsAt: (level: ConfigSource) => LevelLimits | undefined,
): ChosenLimits | undefined {
  for (const source of CONFIG_LEVELS) {
    const { limits = [], unsupported = [] } = limitsAt(source) ?? {};
    if (limits.length + unsupported.length > 0) return { limits, unsupported, source };
  }
  return undefined;
}
