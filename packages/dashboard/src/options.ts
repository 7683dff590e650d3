/** The options of the dashboard and their check. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { checkFields, checkFlag, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
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

const FIELDS = [
  "limiter",
  "readOnly",
  "authorize",
  "hosts",
] as const satisfies readonly (keyof DashboardOptions)[];

/** Checks the arguments of `dashboard`. */
export function checkDashboard(repository: Repository, options: DashboardOptions): void {
  if (!(repository instanceof Repository)) {
    const reason = `expected a Repository, got ${show(repository)}`;
    throw new ValidationError("repository", repository, reason);
  }
  checkFields("options", options, FIELDS);
  checkFlag("readOnly", options.readOnly);
  if (typeof options.authorize !== "function") {
    const reason = `expected a function that decides about requests, got ${show(options.authorize)}`;
    throw new ValidationError("authorize", options.authorize, reason);
  }
  if (options.limiter !== undefined && !(options.limiter instanceof RateLimiter)) {
    const reason = `expected a RateLimiter, got ${show(options.limiter)}`;
    throw new ValidationError("limiter", options.limiter, reason);
  }
  const { hosts } = options;
  if (hosts === undefined) return;
  if (Array.isArray(hosts) && hosts.every((host) => typeof host === "string")) return;
  throw new ValidationError("hosts", hosts, `expected an array of names, got ${show(hosts)}`);
}
