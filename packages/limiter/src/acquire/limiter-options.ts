/** The options of a limiter, and their checks. */

import { defined } from "../base/defined.ts";
import { unbreakable } from "../base/listener.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/errors/unavailability.ts";
import {
  checkByTable,
  FLAG,
  FUNCTION,
  type OptionTable,
  unknownOption,
} from "../domain/options.ts";
import { STORE_OPTIONS } from "../repository/stores/stores.ts";
import { checkMissingLimits, type MissingLimits } from "./acquire-request.ts";
import type { LimiterEvent, LimiterWarning } from "./events.ts";

/** Options of a limiter. */
export interface RateLimiterOptions {
  /** The policy of acquires while the store cannot answer; overrides the stored setting. */
  readonly onUnavailable?: OnUnavailable;
  /** `false`: read each bucket before consuming, at one more read per acquire. Default true. */
  readonly speculativeWrites?: boolean;
  /** How a name in `consume` is treated that the entity has no limit for. Default `error`. */
  readonly missingLimits?: MissingLimits;
  /**
   * Whether limits stored for `TOTAL`, which hold over all resources of an entity, count too.
   * Default: only where a middleware, `limitFetch` or the gateway acquires.
   */
  readonly totals?: boolean;
  /** Called with everything that happens. */
  readonly events?: (event: LimiterEvent) => void;
  /** Called with problems behind a call that was answered; otherwise the process is warned. */
  readonly onWarning?: (warning: LimiterWarning) => void;
}

const OPTIONS: OptionTable<RateLimiterOptions> = {
  onUnavailable: { check: (_, value) => checkOnUnavailable(value) },
  speculativeWrites: { check: FLAG },
  missingLimits: { check: (_, value) => checkMissingLimits(value) },
  totals: { check: FLAG },
  events: { check: FUNCTION },
  onWarning: { check: FUNCTION },
};

/** Checks options that came from outside, and makes listeners that cannot break a call. */
export function checkedOptions(options: RateLimiterOptions): RateLimiterOptions {
  checkByTable(options, OPTIONS);
  const { events, onWarning } = options;
  return {
    ...options,
    ...(events && { events: unbreakable("events", events) }),
    ...(onWarning && { onWarning: unbreakable("onWarning", onWarning) }),
  };
}

/** Splits the options of `open` into those of the limiter, checked, and those of the store. */
export function splitOptions<Options extends RateLimiterOptions>(options: Options) {
  const names = [...new Set([...Object.keys(OPTIONS), ...STORE_OPTIONS])];
  checkByTable(options, OPTIONS, (name, value) =>
    names.includes(name) ? undefined : unknownOption(name, value, names),
  );
  const { speculativeWrites, missingLimits, totals, events, onWarning, ...store } = options;
  const { onUnavailable } = store;
  const own: RateLimiterOptions = defined({
    onUnavailable,
    speculativeWrites,
    missingLimits,
    totals,
    events,
    onWarning,
  });
  return { own, store };
}
