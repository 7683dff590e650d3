/** Applies `onUnavailable` to calls that the store could not answer. */

import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import type { LeaseTarget } from "./lease/lease-host.ts";

export interface OutageOptions {
  readonly onUnavailable: OnUnavailable | undefined;
}

export class Outage {
  readonly #internals: RepositoryInternals;
  readonly #options: OutageOptions;

  constructor(internals: RepositoryInternals, options: OutageOptions) {
    this.#internals = internals;
    this.#options = options;
  }

  /** Lets a call pass uncounted, or throws. */
  pass(request: LeaseTarget, cause: RateLimiterUnavailable): void {
    if (this.blocks(request)) throw this.#blocked(request, cause);
  }

  /** The option of the call overrides that of the limiter, which overrides the stored setting. */
  blocks(request: LeaseTarget): boolean {
    const mode =
      request.onUnavailable ??
      this.#options.onUnavailable ??
      this.#internals.onUnavailable ??
      this.#internals.resolver.cache.lastOnUnavailable;
    return mode !== "allow";
  }

  #blocked(request: LeaseTarget, error: RateLimiterUnavailable): RateLimiterUnavailable {
    // The context comes last in a message, and more of it is known here.
    const message = error.message.replace(` [stack=${error.stackName}]`, "");
    return new RateLimiterUnavailable(message, {
      cause: error.cause ?? error,
      ...(error.reason === undefined ? {} : { reason: error.reason }),
      nothingWritten: error.nothingWritten,
      stackName: this.#internals.storeName,
      entityId: request.entityId,
      resource: request.resource,
    });
  }
}
