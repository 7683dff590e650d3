/** The options of a limiter, and their checks. */

import { checkOptions as checkObject, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/errors/unavailability.ts";
import { STORE_OPTIONS } from "../repository/stores/stores.ts";
import { checkMissingLimits, type MissingLimits } from "./acquire-request.ts";
import type { LimiterEvent, LimiterWarning } from "./events.ts";

/** Options of a limiter. */
export interface RateLimiterOptions {
  /** What acquires do while the store cannot answer; overrides the stored setting. */
  readonly onUnavailable?: OnUnavailable;
  /** `false`: look at each bucket before consuming. A read more per acquire. Default true. */
  readonly speculativeWrites?: boolean;
  /** What a name in `consume` does that the entity has no limit for. Default `error`. */
  readonly missingLimits?: MissingLimits;
  /** Called with everything that happens. */
  readonly events?: (event: LimiterEvent) => void;
  /** Called with problems behind a call that was answered; otherwise the process is warned. */
  readonly onWarning?: (warning: LimiterWarning) => void;
}

const OPTION_TYPES: Readonly<Record<keyof RateLimiterOptions, string>> = {
  onUnavailable: "string",
  speculativeWrites: "boolean",
  missingLimits: "string",
  events: "function",
  onWarning: "function",
};

/** Checks options that came from outside. */
export function checkOptions(options: RateLimiterOptions): void {
  checkObject("options", options, "an object of options");
  for (const [name, value] of Object.entries(options)) {
    const type = Object.hasOwn(OPTION_TYPES, name)
      ? OPTION_TYPES[name as keyof RateLimiterOptions]
      : undefined;
    if (type === undefined) throw unknownOption(name, value, Object.keys(OPTION_TYPES));
    if (value !== undefined && typeof value !== type) {
      throw new ValidationError(name, value, `expected a ${type}, got ${show(value)}`);
    }
  }
  if (options.onUnavailable !== undefined) checkOnUnavailable(options.onUnavailable);
  checkMissingLimits(options.missingLimits);
}

function unknownOption(name: string, value: unknown, names: readonly string[]): ValidationError {
  const reason = `"${name}" is not an option; expected ${names.join(", ")}`;
  return new ValidationError(name, value, reason);
}

/** Splits the options of `open` into those of the limiter, checked, and those of the store. */
export function splitOptions<Options extends RateLimiterOptions>(options: Options) {
  checkObject("options", options, "an object of options");
  const names = new Set([...Object.keys(OPTION_TYPES), ...STORE_OPTIONS]);
  for (const [name, value] of Object.entries(options)) {
    if (!names.has(name)) throw unknownOption(name, value, [...names]);
  }
  const { speculativeWrites, missingLimits, events, onWarning, ...store } = options;
  const { onUnavailable } = store;
  const own: RateLimiterOptions = {
    ...(onUnavailable === undefined ? {} : { onUnavailable }),
    ...(speculativeWrites === undefined ? {} : { speculativeWrites }),
    ...(missingLimits === undefined ? {} : { missingLimits }),
    ...(events === undefined ? {} : { events }),
    ...(onWarning === undefined ? {} : { onWarning }),
  };
  checkOptions(own);
  return { own, store };
}
