/** What an HTTP middleware reports about itself. */

/**
 * One decision about a request. `observed` is a request that `mode: "observe"` let through although
 * a limit refused it; `degraded` is one that was let through uncounted, because the store could not
 * answer. `commit_failed` tells of a lease whose end could not be written.
 *
 * @example
 * ```ts
 * import type { HttpEvent } from 'zae-limiter/express';
 * const print = (event: HttpEvent) => console.log(event.type, event.entityId);
 * ```
 */
export interface HttpEvent {
  /** How the request was decided; `commit_failed`: its final amounts could not be written. */
  readonly type: "granted" | "refused" | "observed" | "degraded" | "unavailable" | "commit_failed";
  /** `undefined` for a request without a key. */
  readonly entityId?: string | undefined;
  /** The resource of the request; `undefined` when the request failed before it was known. */
  readonly resource?: string | undefined;
  /** The status of an answer that replaced the handler's, also of one that was only observed. */
  readonly status?: number;
  /** Of a refusal, also of an observed one: `Infinity` when the request never fits. */
  readonly retryAfterSeconds?: number;
  /** Why the store could not answer, or why the end of a lease could not be written. */
  readonly cause?: unknown;
}
