/** The options of the dashboard and their check. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { checkFunction, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  checkByTable,
  FLAG,
  FUNCTION,
  instanceOf,
  type OptionTable,
} from "@zae-limiter/limiter/domain/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";

/**
 * Options of the dashboard.
 *
 * @example
 * ```ts
 * import type { DashboardOptions } from 'zae-limiter/dashboard';
 * const options: DashboardOptions = {
 *   readOnly: true,
 *   authorize: (request) => request.headers.get('x-user') ?? false,
 * };
 * console.log(options.readOnly); // true
 * ```
 */
export interface DashboardOptions {
  /** A limiter of this process, whose refusals are shown live. */
  readonly limiter?: RateLimiter;
  /** Refuses every change. Default false. */
  readonly readOnly?: boolean;
  /**
   * Decides about every request. `false` refuses it; a text is the name of the user, which the
   * audit log shows as the principal of changes; `true` lets changes through without a name.
   */
  readonly authorize: (request: Request) => boolean | string | Promise<boolean | string>;
  /**
   * The names this server is reached by, with their port: `limits.example.com`, `localhost:8080`.
   * A request for any other name is refused. Default: every name is accepted, and a request of a
   * browser must come from the same name.
   */
  readonly hosts?: readonly string[];
}

const OPTIONS: OptionTable<DashboardOptions> = {
  limiter: { check: instanceOf(RateLimiter) },
  readOnly: { check: FLAG },
  authorize: { check: FUNCTION },
  hosts: { check: checkHosts },
};

/** Checks the arguments of `dashboard`. */
export function checkDashboard(repository: Repository, options: DashboardOptions): void {
  instanceOf(Repository)("repository", repository);
  checkByTable(options, OPTIONS);
  checkFunction("authorize", options.authorize);
}

function checkHosts(field: string, hosts: unknown): void {
  if (Array.isArray(hosts) && hosts.every((host) => typeof host === "string")) return;
  throw new ValidationError(field, hosts, `expected an array of names, got ${show(hosts)}`);
}
