/** Everything that a run needs before its first worker begins. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  placeName,
  STORES,
  type StoreLocation,
  traitsOf,
  urlOf,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import { chosenClasses } from "@zae-limiter/loadtest/define-load.ts";
import type { Load, LoadContext } from "@zae-limiter/loadtest/load.ts";
import { intervalMsOf, type Plan } from "@zae-limiter/loadtest/plan.ts";
import { checkScenarioPath, loadScenario } from "@zae-limiter/loadtest/scenario-file.ts";
import type { StoreAddress } from "@zae-limiter/loadtest/worker-process.ts";
import { type Call, CommandFailure, UsageError } from "../frame/command.ts";
import { storePlace } from "../store/store-options.ts";
import type { LoadOptions, ScenarioOptions } from "./options.ts";

/** A scenario and the store it runs on. */
export interface Prepared {
  readonly load: Load;
  /** Absolute. */
  readonly file: string;
  readonly classes: readonly string[];
  readonly limiter: RateLimiter;
  readonly store: StoreAddress;
  readonly storeName: string;
  readonly location: StoreLocation;
}

/** Loads the scenario and opens the store. */
export async function prepare(call: Call<ScenarioOptions>): Promise<Prepared> {
  const { options, terminal, args } = call;
  const load = await loadScenario(options.file);
  const classes = chosenClasses(load, args);
  const { location, namespace, options: open } = storePlace(options, terminal);
  const limiter = new RateLimiter(await call.open("write"));
  return {
    load,
    file: checkScenarioPath(options.file),
    classes,
    limiter,
    store: { url: urlOf(location), namespace, timeoutMs: open.timeoutMs as number },
    storeName: placeName(location),
    location,
  };
}

/** Runs `setup` or `teardown` of the scenario. */
export async function step(name: "setup" | "teardown", prepared: Prepared): Promise<void> {
  const { limiter, load } = prepared;
  const context: LoadContext = { limiter, repository: limiter.repository };
  try {
    await load[name]?.(context);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`The scenario's ${name} failed: ${message}`, 1, { cause: error });
  }
}

/** Returns the plan that the options say. */
export function planOf(options: LoadOptions, prepared: Prepared): Plan {
  const { users, spawnRate, rate, duration, workers } = options;
  refuseUnshared(workers, prepared);
  const { classes } = prepared;
  const durationMs = Math.round(duration * 1000);
  return { classes, users, spawnRate, rate, durationMs, intervalMs: intervalMsOf(durationMs) };
}

/** Refuses several workers on a store that only one process sees. */
export function refuseUnshared(workers: number, { location }: Prepared): void {
  if (workers === 1 || traitsOf(location).isShared) return;
  const shared = STORES.filter(({ traits }) => traits.isShared).map(({ title }) => title);
  throw new UsageError(
    `${urlOf(location)} is seen by one process only, got --workers ${workers}; ` +
      `use ${shared.join(" or ")}`,
  );
}
