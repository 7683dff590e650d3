/** Checks of scenarios. */

import {
  checkFields,
  checkFunction,
  checkNumber,
  isPlainObject,
  show,
} from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Load, LoadUser, Wait } from "./load.ts";

const CLASS_PATTERN = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const WAIT_MS_MAX = 86_400_000;

/**
 * Declares a scenario. It is the default export of a file that `zae-limiter loadtest run -f` runs.
 *
 * @example
 * ```ts
 * import { defineLoad } from 'zae-limiter/loadtest';
 * const load = defineLoad({
 *   setup: ({ repository }) => repository.limits.setSystem(['rpm:1000000']),
 *   users: {
 *     ApiUser: {
 *       wait: [100, 1000],
 *       task: async (session) => {
 *         const lease = await session.acquire({
 *           entityId: session.userId, resource: 'api', consume: { rpm: 1 },
 *         });
 *         await lease.commit();
 *       },
 *     },
 *   },
 * });
 * console.log(Object.keys(load.users)); // [ 'ApiUser' ]
 * ```
 */
export function defineLoad(load: Load): Load {
  return checkLoad(load);
}

/** Refuses a value that is not a scenario. */
export function checkLoad(load: unknown): Load {
  checkFields("load", load, ["setup", "users", "teardown"]);
  const { setup, users, teardown } = load as Record<string, unknown>;
  if (setup !== undefined) checkFunction("load.setup", setup);
  if (teardown !== undefined) checkFunction("load.teardown", teardown);
  if (!isPlainObject(users) || Object.keys(users).length === 0) {
    const reason = `expected at least one class of users, got ${show(users)}`;
    throw new ValidationError("load.users", users, reason);
  }
  for (const [name, user] of Object.entries(users)) checkUser(name, user);
  return load as Load;
}

/** Returns the names of the classes to run: all with a weight, or the requested ones. */
export function chosenClasses(load: Load, names: readonly string[]): readonly string[] {
  const all = Object.keys(load.users);
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) {
    const reason = `the scenario has no user class ${show(unknown)}; it has ${all.join(", ")}`;
    throw new ValidationError("users", unknown, reason);
  }
  if (names.length > 0) return [...new Set(names)];
  const weighted = all.filter((name) => weightOf(load, name) > 0);
  if (weighted.length > 0) return weighted;
  throw new ValidationError("load.users", load.users, "expected a class with a weight above 0");
}

export function weightOf(load: Load, name: string): number {
  return load.users[name]?.weight ?? 1;
}

function checkUser(name: string, user: unknown): void {
  const field = `load.users.${name}`;
  if (!CLASS_PATTERN.test(name)) {
    const reason = `expected a name of letters, digits and "_", got ${show(name)}`;
    throw new ValidationError("load.users", name, reason);
  }
  checkFields(field, user, ["weight", "wait", "start", "task"]);
  const { weight = 1, wait = 0, start, task } = user as Partial<LoadUser>;
  checkNumber(`${field}.weight`, weight, 0, Number.MAX_VALUE);
  checkWait(`${field}.wait`, wait);
  if (start !== undefined) checkFunction(`${field}.start`, start);
  checkFunction(`${field}.task`, task);
}

function checkWait(field: string, wait: Wait): void {
  const isTime = (ms: unknown) => typeof ms === "number" && ms >= 0 && ms <= WAIT_MS_MAX;
  if (typeof wait === "function" || isTime(wait)) return;
  if (Array.isArray(wait) && wait.length === 2 && wait.every(isTime) && wait[0] <= wait[1]) return;
  const reason = `expected milliseconds, [min, max] or a function, got ${show(wait)}`;
  throw new ValidationError(field, wait, reason);
}
