/**
 * Ends a request to AWS early where nothing listens. The SDK takes a refused connection for a
 * passing one and repeats the request for many seconds, while the user sees nothing.
 */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

/** A server that restarts is back by then. */
const PAUSE_MS = 200;

/**
 * The connection was refused twice. It has no `code` and no `cause`, because the SDK would repeat
 * the request for either.
 */
class RefusedConnection extends Error {
  override readonly name = "RefusedConnection";
}

/** The part of a client of the SDK that this file needs. */
export interface Repeating {
  readonly middlewareStack: {
    add(
      middleware: (next: Handler) => Handler,
      place: { readonly step: "deserialize"; readonly priority: "low"; readonly name: string },
    ): void;
  };
}

type Handler = (args: never) => Promise<unknown>;

/** Repeats a request once when its connection is refused, then throws `RefusedConnection`. */
export function repeatRefusedOnce(client: Repeating, timer: Timer): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
      await timer.sleep(PAUSE_MS);
      try {
        return await next(args);
      } catch (error) {
        throw isRefused(error) ? new RefusedConnection((error as Error).message) : error;
      }
    },
    { step: "deserialize", priority: "low", name: "zaeLimiterRefused" },
  );
}

function isRefused(error: unknown): boolean {
  const { code, errors = [] } = (error ?? {}) as { code?: unknown; errors?: readonly unknown[] };
  return code === "ECONNREFUSED" || (errors.length > 0 && errors.every(isRefused));
}
