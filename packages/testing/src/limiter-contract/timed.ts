/** A repository whose calls take no virtual time, however long the store behind it takes. */

import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { VirtualTime } from "../time/virtual-time.ts";

/** Stops virtual time during the calls that a limiter makes. */
export function timed(repository: Repository, time: VirtualTime): Repository {
  const internals = repository[INTERNALS];
  const watched = {
    ...internals,
    buckets: watch(internals.buckets, time),
    resolver: watch(internals.resolver, time),
  };
  return new Proxy(repository, {
    get: (target, name) => (name === INTERNALS ? watched : member(target, name)),
  });
}

/** Wraps an object so that time does not pass while one of its promises is pending. */
function watch<T extends object>(object: T, time: VirtualTime): T {
  return new Proxy(object, {
    get: (target, name) => {
      const found = member(target, name);
      if (typeof found !== "function") return found;
      return (...parameters: unknown[]) => {
        const result: unknown = found(...parameters);
        return result instanceof Promise ? time.during(result) : result;
      };
    },
  });
}

/** Returns a member bound to its owner: private fields are not reached through a proxy. */
function member(target: object, name: string | symbol): unknown {
  const found: unknown = Reflect.get(target, name, target);
  return typeof found === "function" ? found.bind(target) : found;
}
